import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { yamlInContrib } from '../support/docs.ts'
import { makeFolder } from '../support/folder.ts'
import { startCluster } from '../support/postgres-cluster.ts'
import { OWN_POSTGRES, ownedByServer } from '../support/postgres-system.ts'
import { lacks } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { CONTAINERS, type ContainerOptions, PLANT_ROUND, startContainer } from './container.ts'
import { imageConfiguration, stages } from './dockerfile.ts'
import { makeImageRoot, NONROOT, PLANTSTORE } from './image-root.ts'
import { PROJECT } from './run.ts'

const SHELLS = ['sh', 'bash', 'dash', 'ash', 'busybox', 'zsh', 'ksh', 'perl', 'python3']
const PACKAGES_TIMEOUT_MS = 60_000

const PROBES = ['startupProbe', 'livenessProbe', 'readinessProbe'] as const

/** Makes curl print the status of an answer alone. */
const STATUS = ['--write-out', '%{http_code}', '--output', '/dev/null']

/** A variable of a container, as Kubernetes describes it. */
type Variable = { readonly name: string } & (
  | { readonly value: string; readonly valueFrom: undefined }
  | { readonly value: undefined; readonly valueFrom: { readonly secretKeyRef: { readonly key: 'url' } } }
)

/** The container of a workload. */
interface Workload {
  readonly env: readonly Variable[]
  readonly volumeMounts: readonly [{ readonly mountPath: string }]
}

/** The pod of a workload in `contrib`. */
const podOf = async (path: string) => (await yamlInContrib(path)).spec.template.spec

const portOf = (ports: readonly { readonly name: string; readonly containerPort: number }[], name: string) =>
  ports.find((port) => port.name === name)?.containerPort

let root: Awaited<ReturnType<typeof makeImageRoot>> | undefined

/** Starts a container as the Dockerfile describes, or with other options. */
async function startImage(options: Partial<ContainerOptions> = {}) {
  return startContainer({ root: root?.path ?? '', ...(await imageConfiguration()), ...options })
}

// The containers below run as the other instructions of the final stage say.
test('the final image has the executable, a /data of its user, and nothing else', async () => {
  const [args, build, final] = await stages()

  expect(args).toEqual([
    expect.stringMatching(/^ARG BUILD_IMAGE=oven\/bun:1\.4\.5/),
    'ARG FINAL_IMAGE=gcr.io/distroless/base-debian12:nonroot',
  ])
  expect(build).toContain('RUN bun install --frozen-lockfile --production')
  expect(build).toContain('RUN mkdir /data && chown 65532:65532 /data')
  expect(final?.filter((line) => /^(?:FROM|COPY|ADD|RUN|VOLUME|EXPOSE) /.test(line))).toEqual([
    expect.stringMatching(/^FROM \$\{FINAL_IMAGE\}$/),
    'COPY --from=build /build/dist/plantstore /usr/local/bin/plantstore',
    'COPY --from=build --chown=65532:65532 /data /data',
    'VOLUME /data',
    'EXPOSE 3000',
  ])
})

test('.dockerignore lets through the files that the Dockerfile copies, and nothing else', async () => {
  const [, build] = await stages()
  const copied = build?.flatMap((line) => (line.startsWith('COPY ') ? line.split(' ').slice(1, -1) : [])) ?? []
  const [first, ...allowed] = (await Bun.file(join(PROJECT, '.dockerignore')).text()).trim().split('\n')

  expect(first).toBe('*')
  expect(allowed.map((line) => line.replace(/^!/, '')).sort()).toEqual(copied.sort())
})

describe.skipIf(lacks(CONTAINERS))('a container of the image, on the packages of distroless base', () => {
  beforeAll(async () => {
    root = await makeImageRoot()
  }, PACKAGES_TIMEOUT_MS)
  afterAll(() => root?.[Symbol.dispose]())

  test('serves as user 65532, is healthy, makes tokens, and ends with 0 at SIGTERM', async () => {
    await using container = await startImage()
    const { healthcheck } = await imageConfiguration()
    await container.waitFor(healthcheck)
    const answers = await container.plantRound()
    const { exitCode, stdout, stderr } = await container.end()

    expect(answers).toEqual(PLANT_ROUND)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toContain('"address":"http://0.0.0.0:3000","database":"/data/plantstore.db"')
    expect(stdout).toContain('"signal":"SIGTERM"')
    expect(readdirSync(container.data)).toEqual(['plantstore.db'])
    expect(statSync(join(container.data, 'plantstore.db'))).toMatchObject({ uid: NONROOT, gid: NONROOT })
  })

  test('has no capability, no way to get one, and only the loopback network', async () => {
    await using container = await startImage()
    await container.waitFor([PLANTSTORE, 'healthcheck'])
    const pid = await container.pid()
    const status = Object.fromEntries(
      readFileSync(`/proc/${pid}/status`, 'utf8')
        .split('\n')
        .map((line) => line.split(':\t')),
    )
    const interfaces = [...readFileSync(`/proc/${pid}/net/dev`, 'utf8').matchAll(/^ *(\w+):/gm)].map(([, name]) => name)

    expect(status).toMatchObject({
      Uid: '65532\t65532\t65532\t65532',
      Gid: '65532\t65532\t65532\t65532',
      CapEff: '0000000000000000',
      CapBnd: '0000000000000000',
      CapAmb: '0000000000000000',
      NoNewPrivs: '1',
    })
    expect(interfaces).toEqual(['lo'])
  })

  test('can write only to /data', async () => {
    await using container = await startImage()
    await container.waitFor([PLANTSTORE, 'healthcheck'])
    const write = async (folder: string) => {
      const database = join(folder, 'other.db')
      const { exitCode } = await container.exec([PLANTSTORE, 'token', 'create', '--user', 'me', '--database', database])
      return [folder, exitCode]
    }
    const folders = '/ /tmp /home/nonroot /etc /usr/local/bin /var/tmp /dev /sys /proc /run'.split(' ')

    expect(await Promise.all(folders.map(write))).toEqual(folders.map((folder) => [folder, 3]))
    expect(await write('/data')).toEqual(['/data', 0])
  })

  test('has no shell, and no program but plantstore', async () => {
    await using container = await startImage()
    await container.waitFor([PLANTSTORE, 'healthcheck'])
    const shell = await container.exec(['/bin/sh', '-c', 'exit 0'])
    const files = [...new Glob('**').scanSync({ cwd: root?.path ?? '', dot: true })]

    expect(shell.exitCode).not.toBe(0)
    expect(shell.stderr).toContain('/bin/sh')
    expect(files.filter((file) => SHELLS.includes(file.split('/').at(-1) ?? ''))).toEqual([])
    expect(files.filter((file) => /(?:^|\/)s?bin\//.test(file))).toEqual([PLANTSTORE.slice(1)])
  })

  /** Starts a container as a workload of `contrib` says. Resolves to what its probes, a client and Prometheus get. */
  async function startWorkload(path: string, optionsFor: (container: Workload) => Promise<Partial<ContainerOptions>>) {
    const { securityContext, containers } = await podOf(path)
    const [container] = containers
    const args = [PLANTSTORE, ...container.args]
    const running = await startImage({ user: securityContext.runAsUser, args, ...(await optionsFor(container)) })
    await running.waitFor([PLANTSTORE, 'healthcheck'])
    const probe = (name: (typeof PROBES)[number]) => running.curl(container[name].httpGet.path, STATUS)
    expect(await Promise.all(PROBES.map(probe))).toEqual(['200', '200', '200'])
    expect(await running.plantRound()).toEqual(PLANT_ROUND)
    const metrics = await running.curl('/metrics', ['--fail'], portOf(container.ports, 'metrics'))
    expect(metrics).toContain('\nplantstore_http_requests_total{')
    return { ...running, probe }
  }

  test('serves as the StatefulSet says, answers its probes, and is not ready once it is asked to end', async () => {
    const path = 'contrib/kubernetes/sqlite/stateful-set.yaml'
    await using running = await startWorkload(path, async () => ({ dataMode: 0o770 }))
    const ended = running.end()
    await until('the container is not ready', async () => (await running.probe('readinessProbe')) === '503')

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
      const variables = env.map(
        ({ name, value, valueFrom }) => `${name}=${value ?? { url }[valueFrom.secretKeyRef.key]}`,
      )
      return {
        env: [...(await imageConfiguration()).env, ...variables],
        secret: { source: secret.path, destination: mountPath },
      }
    }
    await using running = await startWorkload('contrib/kubernetes/postgres/deployment.yaml', optionsFor)

    expect(readdirSync(running.data)).toEqual([])
  })
})
