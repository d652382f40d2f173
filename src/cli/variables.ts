// Tested in test/cli/transcripts/serve-options.txt.
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { OPTIONS, VARIABLE_PREFIX } from '../config.ts'
import { either, parseValue } from '../values.ts'

/** Applies `true` and `false` in the variables of flags. Commander takes every value there for true, also `false`. */
export function applyBooleanVariables(command: CommandUnknownOpts, env: Readonly<Record<string, string | undefined>>) {
  for (const option of command.options) {
    const name = option.attributeName()
    const isFlag = !option.required && !option.optional
    if (!isFlag || command.getOptionValueSource(name) !== 'env') continue
    const isTrue = parseValue(env[option.envVar ?? ''] ?? '', either('true', 'false'), `${option.envVar}`)
    command.setOptionValueWithSource(name, isTrue !== option.negate, 'env')
  }
}

/** Variables with our prefix that no option has, probably misspelt. Variables that Kubernetes sets are left out. */
export function unknownVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = new Set(Object.values(OPTIONS).map(({ envVar }) => envVar))
  return Object.keys(env).filter(
    (name) => name.startsWith(VARIABLE_PREFIX) && !known.has(name) && !KUBERNETES_VARIABLE.test(`${name}=${env[name]}`),
  )
}

/**
 * The variables that Kubernetes sets in each container for a Service whose name begins with `plantstore`
 * (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables). `PLANTSTORE_PORT` is one of them
 * only if its value is a URL.
 */
const KUBERNETES_VARIABLE =
  /^\w+_(?:SERVICE_HOST=|SERVICE_PORT(?:_\w+)?=|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?=|PORT=(?:tcp|udp|sctp):)/
