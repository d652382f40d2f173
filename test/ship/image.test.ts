import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { yamlInContrib } from '../support/docs.ts'
import { makeFolder } from '../support/folder.ts'
import { startCluster } from '../support/postgres-cluster.ts'
import { OWN_POSTGRES, ownedByServer } from '../support/postgres-system.ts'
import { lacks } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { CONTAINERS, type ContainerOptions, PLANT_ROUND, startContainer } from './container.ts'
import { argumentsOf, imageConfiguration } from './dockerfile.ts'
import { makeImageRoot, NONROOT, PLANTSTORE } from './image-root.ts'
import { PROJECT } from './run.ts'

const PROBES = ['startupProbe', 'livenessProbe', 'readinessProbe'] as const

/** Makes curl print the status of an answer alone. */
const STATUS = ['--write-out', '%{http_code}', '--output', '/dev/null']

/** The container of a workload, as Kubernetes describes it. A variable without a value has the URL of the Secret. */
interface Workload {
  readonly env: readonly { readonly name: string; readonly value?: string }[]
  readonly volumeMounts: readonly [{ readonly mountPath: string }]
}

let root: Awaited<ReturnType<typeof makeImageRoot>> | undefined

/** Starts a container as the Dockerfile describes, or with other options. */
async function startImage(options: Partial<ContainerOptions> = {}) {
  return startContainer({ root: root?.path ?? '', ...(await imageConfiguration()), ...options })
}

test('.dockerignore lets through the files that the Dockerfile copies, and nothing else', async () => {
  const sources = (await argumentsOf('COPY')).filter((paths) => !paths.startsWith('--from'))
  const copied = sources.flatMap((paths) => paths.split(' ').slice(0, -1))
  const [first, ...allowed] = (await Bun.file(join(PROJECT, '.dockerignore')).text()).trim().split('\n')

  expect(first).toBe('*')
  expect(allowed.map((line) => line.replace(/^!/, '')).sort()).toEqual(copied.sort())
})

describe.skipIf(lacks(CONTAINERS))('a container of the image, on the packages of distroless base', () => {
  beforeAll(async () => {
    root = await makeImageRoot()
  })
  afterAll(() => root?.[Symbol.dispose]())

  test.concurrent('serves as user 65532 without any other program, is healthy, and ends with 0 at SIGTERM', async () => {
    const { healthcheck } = await imageConfiguration()
    await using container = await startImage()
    await container.waitFor(healthcheck)
    const answers = await container.plantRound()
    const { exitCode, stdout, stderr } = await container.end()
    const files = [...new Glob('**').scanSync({ cwd: root?.path ?? '', dot: true })]

    expect(answers).toEqual(PLANT_ROUND)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toContain('"address":"http://0.0.0.0:3000","database":"/data/plantstore.db"')
    expect(stdout).toContain('"signal":"SIGTERM"')
    expect(readdirSync(container.data)).toEqual(['plantstore.db'])
    expect(statSync(join(container.data, 'plantstore.db'))).toMatchObject({ uid: NONROOT, gid: NONROOT })
    expect(files.filter((file) => /(?:^|\/)s?bin\//.test(file))).toEqual([PLANTSTORE.slice(1)])
  })

  /** Starts a container as a workload of `contrib` says. Resolves to what its probes, a client and Prometheus get. */
  async function startWorkload(path: string, optionsFor: (container: Workload) => Promise<Partial<ContainerOptions>>) {
    const { securityContext, containers } = (await yamlInContrib(path)).spec.template.spec
    const [container] = containers
    const args = [PLANTSTORE, ...container.args]
    const running = await startImage({ user: securityContext.runAsUser, args, ...(await optionsFor(container)) })
    await running.waitFor([PLANTSTORE, 'healthcheck'])
    const probe = (name: (typeof PROBES)[number]) => running.curl(container[name].httpGet.path, STATUS)
    expect(await Promise.all(PROBES.map(probe))).toEqual(['200', '200', '200'])
    expect(await running.plantRound()).toEqual(PLANT_ROUND)
    const [, { containerPort }] = container.ports
    const metrics = await running.curl('/metrics', ['--fail'], containerPort)
    expect(metrics).toContain('\nplantstore_http_requests_total{')
    return { ...running, probe }
  }

  test.concurrent('serves as the StatefulSet says, answers its probes, and is not ready once it is asked to end', async () => {
    const path = 'contrib/kubernetes/sqlite/stateful-set.yaml'
    await using running = await startWorkload(path, async () => ({ dataMode: 0o770 }))
    const ended = running.end()
    await until('the container is not ready', async (see) => see(await running.probe('readinessProbe')) === '503')

    expect(await running.probe('livenessProbe')).toBe('200')
    expect(await ended).toMatchObject({ exitCode: 0, stderr: '' })
  })

  test.skipIf(lacks(OWN_POSTGRES))('serves on PostgreSQL as the Deployment says, with its Secret', async () => {
    using secret = makeFolder()
    chmodSync(secret.path, 0o755)
    ownedByServer(secret.path)
    // The socket is in the folder of the Secret, because the container has no network.
    using cluster = await startCluster({ unix_socket_directories: secret.path })
    writeFileSync(join(secret.path, 'password'), 'Sesame-99\n')
    const optionsFor = async ({ env, volumeMounts: [{ mountPath }] }: Workload) => {
      const url = `postgres://plantstore@${encodeURIComponent(mountPath)}:${cluster.port}/postgres`
      const variables = env.map(({ name, value = url }) => `${name}=${value}`)
      return {
        env: [...(await imageConfiguration()).env, ...variables],
        secret: { source: secret.path, destination: mountPath },
      }
    }
    await using running = await startWorkload('contrib/kubernetes/postgres/deployment.yaml', optionsFor)

    expect(readdirSync(running.data)).toEqual([])
  })
})
