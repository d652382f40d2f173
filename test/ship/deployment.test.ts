import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { pathOfPage, readContrib, yamlInContrib } from '../support/docs.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks, program } from '../support/requirement.ts'
import { PROJECT, runIn } from './run.ts'

/** The default of `--drain`. Docker and Kubernetes must wait longer for a server to end. */
const DRAIN_DEFAULT_S = 8

/** The seconds of a duration like `8s`. */
const secondsOf = (duration: string | undefined): number => Number(duration?.replace(/s$/, ''))
const optionOf = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1]

const COMPOSE = 'contrib/compose.yaml'
const compose = await yamlInContrib(COMPOSE)
const [statefulSet, service] = await yamlInContrib('contrib/kubernetes/plantstore.yaml')
const pod = statefulSet.spec.template.spec
const [container] = pod.containers

describe('the Compose file', () => {
  test.skipIf(lacks(program('docker-compose')))('is valid for docker-compose, which refuses a wrong one', async () => {
    using folder = makeFolder()
    const config = (file: string) => runIn(['docker-compose', '--file', file, 'config', '--quiet'])
    const wrongFile = join(folder.path, 'compose.yaml')
    await Bun.write(wrongFile, (await readContrib(COMPOSE)).replace('read_only', 'read_onely'))
    const wrong = await config(wrongFile)

    expect(await config(pathOfPage(COMPOSE))).toEqual({ stdout: '', stderr: '', exitCode: 0 })
    expect({ ...wrong, stderr: wrong.stderr.includes('read_onely') }).toEqual({ stdout: '', stderr: true, exitCode: 1 })
  })

  test('keeps only /data, drops all rights, and waits longer than the server takes to end', () => {
    const { volumes, ports, read_only, cap_drop, security_opt, stop_grace_period } = compose.services.plantstore

    expect({ volumes, ports, read_only, cap_drop, security_opt }).toEqual({
      volumes: ['plants:/data'],
      ports: ['127.0.0.1:3000:3000'],
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    })
    expect(Object.keys(compose.volumes)).toEqual(['plants'])
    expect(secondsOf(stop_grace_period)).toBeGreaterThan(DRAIN_DEFAULT_S)
  })
})

describe('the Kubernetes manifest', () => {
  test('fits the types of the API of Kubernetes', async () => {
    const misspelt = structuredClone(statefulSet)
    misspelt.spec.template.spec.containers[0].securityContext.readOnlyRootFilesytem = true
    const wrong = structuredClone(service)
    wrong.spec.ports[0].port = 'eighty'

    expect(await kubernetesProblems([statefulSet, service])).toEqual([])
    expect(await kubernetesProblems([misspelt, wrong])).toEqual([
      expect.stringContaining('readOnlyRootFilesytem'),
      "Type 'string' is not assignable to type 'number'.",
    ])
  })

  test('drops all rights, and waits longer than the server takes to end', () => {
    expect({ ...pod.securityContext, ...container.securityContext }).toEqual({
      runAsNonRoot: true,
      runAsUser: 65532,
      runAsGroup: 65532,
      fsGroup: 65532,
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    expect(optionOf(container.args, '--drain-wait')).toBe('5s')
    expect(secondsOf(optionOf(container.args, '--drain'))).toBeGreaterThan(5)
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(secondsOf(optionOf(container.args, '--drain')))
  })

  test('disables service links, whose variables would begin like those of plantstore', () => {
    expect(service.metadata.name).toBe('plantstore')
    expect(pod.enableServiceLinks).toBe(false)
  })

  test('uses the same names in all its parts', () => {
    const { selector, template, volumeClaimTemplates } = statefulSet.spec

    expect(template.metadata.labels).toEqual(selector.matchLabels)
    expect(service.spec.selector).toEqual(selector.matchLabels)
    expect(statefulSet.spec.serviceName).toBe(service.metadata.name)
    expect(container.ports).toEqual([{ name: service.spec.ports[0].targetPort, containerPort: 3000 }])
    expect(container.volumeMounts).toEqual([{ name: volumeClaimTemplates[0].metadata.name, mountPath: '/data' }])
  })
})

/** The module of kubernetes-types for each kind of object. */
const MODULES: Readonly<Record<string, string>> = { StatefulSet: 'apps/v1', Service: 'core/v1' }

/** The errors of the TypeScript compiler for objects for Kubernetes: unknown fields, missing fields, and wrong types. */
async function kubernetesProblems(objects: readonly { readonly kind: string }[]): Promise<readonly string[]> {
  using folder = makeFolder()
  const file = join(folder.path, 'objects.ts')
  const constants = objects.map(({ kind }, index) => {
    const module = join(PROJECT, 'node_modules/kubernetes-types', MODULES[kind] ?? `no-module-for-${kind}`)
    return `import type { ${kind} as Kind${index} } from '${module}'
      const object${index}: Kind${index} = ${JSON.stringify(objects[index])}`
  })
  await Bun.write(file, constants.join('\n'))
  const options = '--noEmit --strict --skipLibCheck --ignoreConfig --module preserve --pretty false'.split(' ')
  const { stdout } = await runIn([join(PROJECT, 'node_modules/.bin/tsc'), ...options, file])
  return stdout.split('\n').flatMap((line) => /error TS\d+: (.*)$/.exec(line)?.[1] ?? [])
}
