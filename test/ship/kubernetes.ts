import { join } from 'node:path'
import { makeFolder } from '../support/folder.ts'
import { PROJECT, runIn } from './run.ts'

/** The module of kubernetes-types for each kind of object. */
const MODULES: Readonly<Record<string, string>> = { StatefulSet: 'apps/v1', Service: 'core/v1' }

interface KubernetesObject {
  readonly kind: string
}

/** The errors of the TypeScript compiler for objects for Kubernetes: unknown fields, missing fields, and wrong types. */
export async function kubernetesProblems(objects: readonly KubernetesObject[]): Promise<readonly string[]> {
  using folder = makeFolder()
  const file = join(folder.path, 'objects.ts')
  const constants = objects.map(({ kind }, index) => {
    const module = join(PROJECT, 'node_modules/kubernetes-types', MODULES[kind] ?? `no-module-for-${kind}`)
    return `import type { ${kind} as Kind${index} } from '${module}'
      export const object${index}: Kind${index} = ${JSON.stringify(objects[index])}`
  })
  await Bun.write(file, constants.join('\n'))
  const options = '--noEmit --strict --skipLibCheck --ignoreConfig --module preserve --pretty false'.split(' ')
  const { stdout } = await runIn([join(PROJECT, 'node_modules/.bin/tsc'), ...options, file])
  return stdout.split('\n').flatMap((line) => /error TS\d+: (.*)$/.exec(line)?.[1] ?? [])
}
