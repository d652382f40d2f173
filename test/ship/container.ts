import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../support/folder.ts'
import { startProgram } from '../support/program.ts'
import type { Requirement } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { makeDirectory, PLANTSTORE } from './image-root.ts'
import { runIn, runWell } from './run.ts'

/** The program of a container, as an image describes it. */
export interface ContainerOptions {
  readonly root: string
  readonly user: number
  readonly args: readonly string[]
  readonly env: readonly string[]
  /** The mode of the folder outside that is /data. It belongs to the user. */
  readonly dataMode?: number
  /** Other folders outside that the container can write to, by their paths there. One at /data replaces the new one. */
  readonly volumes?: Readonly<Record<string, string>>
  /** A folder outside that is read-only in the container, and its path there. */
  readonly secret?: { readonly source: string; readonly destination: string }
}

/** What `plantRound` of a container returns if all is well. */
export const PLANT_ROUND = ['{"name":"Fern"}', '[{"name":"Fern"}]']

const NO_CAPABILITIES = { bounding: [], effective: [], inheritable: [], permitted: [], ambient: [] }
const READ_ONLY = ['nosuid', 'noexec', 'nodev', 'ro']

/**
 * Starts a container by `runc`, as Docker and Kubernetes do: in namespaces of its own, with a read-only root, no capabilities, no
 * new privileges, only the loopback network, and only its volumes writable.
 */
export async function startContainer(options: ContainerOptions) {
  const folder = makeFolder()
  const data = makeFolder()
  makeDirectory(data.path, options.dataMode ?? 0o755, options.user)
  const volumes = { '/data': data.path, ...options.volumes }
  writeFileSync(join(folder.path, 'config.json'), JSON.stringify(configuration(options, volumes)))
  const runc = ['runc', '--root', join(folder.path, 'state')]
  const name = `plantstore-${crypto.randomUUID()}`
  const { child, ended } = startProgram([...runc, 'run', '--bundle', folder.path, name])
  const execCommand = [...runc, 'exec', name]
  const exec = (args: readonly string[]) => runIn([...execCommand, ...args])
  /** The process id outside the container. */
  const pid = async (): Promise<number> => JSON.parse(await runWell([...runc, 'state', name])).pid
  /** Runs curl with a path, by default of the server's API, from inside the container's network. */
  const curl = async (path: string, args: readonly string[] = [], port = 3000): Promise<string> => {
    const inNetwork = ['nsenter', '--net', `--target=${await pid()}`]
    return runWell([...inNetwork, 'curl', '--silent', ...args, `http://127.0.0.1:${port}${path}`])
  }
  return {
    /** The folder outside that is /data. */
    data: volumes['/data'],
    /** What stands before a command, to run it in the container. */
    execCommand,
    exec,
    /** Resolves to the exit code and all output, once the container has ended by itself. */
    ended,
    /** Resolves when a command in the container ends with 0. */
    waitFor: (args: readonly string[]): Promise<true> =>
      until('the container is ready', async (see) => {
        if (child.exitCode === null) return see(await exec(args)).exitCode === 0
        const { stdout, stderr } = await ended
        throw new Error(`the container ended: ${stdout}${stderr}`)
      }),
    pid,
    curl,
    /** Makes a token in the container, and creates and lists a plant with it. Resolves to both answers. */
    async plantRound(): Promise<readonly string[]> {
      const token = await exec([PLANTSTORE, 'token', 'create', '--user', 'me'])
      const authorized = ['--fail', '--header', `authorization: Bearer ${token.stdout.trim()}`]
      const json = ['--header', 'content-type: application/json', '--data', '{"id":1,"name":"Fern"}']
      return [await curl('/plants', [...authorized, ...json]), await curl('/plants', authorized)]
    },
    /** Ends the container by SIGTERM. Resolves to its exit code and all its output. */
    async end() {
      await runWell([...runc, 'kill', name, 'SIGTERM'])
      return ended
    },
    async [Symbol.asyncDispose]() {
      await runIn([...runc, 'delete', '--force', name])
      await child.exited
      folder[Symbol.dispose]()
      data[Symbol.dispose]()
    },
  }
}

/** The configuration of a container (specification of the Open Container Initiative, version 1.0.2). */
const configuration = (
  { root, user, args, env, secret }: ContainerOptions,
  volumes: Readonly<Record<string, string>>,
) => ({
  ociVersion: '1.0.2',
  process: {
    user: { uid: user, gid: user },
    args,
    env,
    cwd: '/',
    capabilities: NO_CAPABILITIES,
    noNewPrivileges: true,
  },
  root: { path: root, readonly: true },
  mounts: [
    { destination: '/proc', type: 'proc', source: 'proc' },
    { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755', 'size=64k'] },
    { destination: '/sys', type: 'sysfs', source: 'sysfs', options: READ_ONLY },
    ...Object.entries(volumes).map(([destination, source]) => ({
      destination,
      source,
      type: 'bind',
      options: ['bind', 'nosuid', 'noexec', 'nodev', 'rw'],
    })),
    ...(secret === undefined ? [] : [{ ...secret, type: 'bind', options: ['bind', ...READ_ONLY] }]),
  ],
  linux: {
    namespaces: ['pid', 'network', 'ipc', 'uts', 'mount'].map((type) => ({ type })),
    maskedPaths: ['/proc/kcore', '/proc/keys', '/proc/timer_list'],
    readonlyPaths: ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
  },
})

const PROGRAMS = ['runc', 'apt-get', 'dpkg-deb', 'nsenter', 'curl']

export const CONTAINERS: Requirement = {
  missing: 'root, runc or the package manager of Debian 12 is missing',
  isMet: () => process.getuid?.() === 0 && PROGRAMS.every((program) => Bun.which(program) !== null),
}
