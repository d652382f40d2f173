import { join } from 'node:path'
import { makeFolder } from '../support/folder.ts'
import { PROJECT, runIn } from './run.ts'

/** Where the types of Kubernetes' API have the kinds that are used here. */
const MODULES: Readonly<Record<string, string>> = { StatefulSet: 'apps/v1', Service: 'core/v1' }

interface KubernetesObject {
  readonly kind: string
}

/**
 * What is wrong with objects for Kubernetes, as the compiler says it of them and of the types that are made from the
 * description of Kubernetes' API: a field that there is not, one that is missing, a value of another type.
 */
export async function kubernetesProblems(objects: readonly KubernetesObject[]): Promise<readonly string[]> {
  using folder = makeFolder()
  const file = join(folder.path, 'objects.ts')
  const constants = objects.map(({ kind }, index) => {
    const module = join(PROJECT, 'node_modules/kubernetes-types', MODULES[kind] ?? `no-module-for-${kind}`)
    return `import type { ${kind} as Kind${index} } from '${module}'
      export const object${index}: Kind${index} = ${JSON.stringify(objects[index])}`
  })
  await Bun.write(file, constants.join('\n'))
  const options = [
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    '--ignoreConfig',
    '--module',
    'preserve',
    '--pretty',
    'false',
  ]
  const { stdout } = await runIn([join(PROJECT, 'node_modules/.bin/tsc'), ...options, file])
  return stdout.split('\n').flatMap((line) => /error TS\d+: (.*)$/.exec(line)?.[1] ?? [])
}
