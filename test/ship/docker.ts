import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mountDisk } from '../support/disk.ts'
import { startProgram } from '../support/program.ts'
import { program, type Requirement } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { runIn } from './run.ts'

/** Images and containers are kept in memory, as those of the registry. */
const STORE_BYTES = 3 * 1024 ** 3

const NETAVARK = '/usr/lib/podman/netavark'

/** A service like Docker's. */
export const DOCKER: readonly Requirement[] = [
  ...['podman', 'runc', 'docker-compose'].map(program),
  { missing: 'netavark is missing', isMet: () => existsSync(NETAVARK) },
]

/**
 * Starts a service of podman with a network, images and containers of its own, until it is disposed of. `bin` has a `docker` that
 * uses it. Images of ghcr.io come from a registry of this machine.
 */
export async function startDocker(registry: string) {
  const disk = mountDisk(STORE_BYTES)
  const file = (name: string) => join(disk.path, name)
  mkdirSync(file('bin'))
  for (const [name, text] of Object.entries(settings(disk.path, registry))) writeFileSync(file(name), text)
  writeFileSync(file('bin/docker'), dockerIn(disk.path), { mode: 0o755 })
  const serve = `ip link set lo up && exec podman system service --time 0 unix://${file('socket')}`
  const unshare = ['unshare', '--net', '--pid', '--mount-proc', '--fork', '--kill-child', 'sh', '-c']
  const { child, ended, stderr } = startProgram([...unshare, `. ${file('variables')}; ${serve}`])
  const dispose = async () => {
    await runIn([file('bin/docker'), 'rm', '--all', '--force', '--time', '0'])
    // It does not end by another signal. Its network and its processes end with it.
    child.kill('SIGKILL')
    await ended
    disk[Symbol.dispose]()
  }
  try {
    await until('podman serves', async (see) => {
      if (child.exitCode !== null) throw new Error(`podman ended: ${stderr()}`)
      return see(await runIn([file('bin/docker'), 'ps'])).exitCode === 0
    })
  } catch (error) {
    await dispose()
    throw error
  }
  return { bin: file('bin'), [Symbol.asyncDispose]: dispose }
}

/** All that podman writes is below the folder. This machine may not raise the limits of a process. */
const settings = (folder: string, registry: string): Readonly<Record<string, string>> => ({
  'storage.conf': `[storage]\ndriver = "vfs"\ngraphroot = "${folder}/root"\nrunroot = "${folder}/run"\n`,
  'containers.conf': `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "${folder}/tmp"
[network]
network_backend = "netavark"
network_config_dir = "${folder}/networks"
`,
  'registries.conf': `[[registry]]\nprefix = "ghcr.io"\nlocation = "${registry}"\ninsecure = true\n`,
  variables: `export CONTAINERS_STORAGE_CONF=${folder}/storage.conf CONTAINERS_CONF=${folder}/containers.conf
export CONTAINERS_REGISTRIES_CONF=${folder}/registries.conf DOCKER_HOST=unix://${folder}/socket
`,
})

/** Pulls go from the network of the machine, where the registry is. docker-compose 1 wants to be told that there is no terminal. */
const dockerIn = (folder: string) => `#!/bin/sh
. ${folder}/variables
case "$1 $2" in
  pull*) exec podman "$@" ;;
  'compose exec') shift 2; exec docker-compose exec -T "$@" ;;
  compose*) shift; exec docker-compose "$@" ;;
esac
exec podman --remote --url "$DOCKER_HOST" "$@"
`
