import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mountDisk } from '../support/disk.ts'
import { startProgram } from '../support/program.ts'
import { until } from '../support/until.ts'
import { makeBaseRoot } from './image-root.ts'
import { runIn, runWell } from './run.ts'

/** Images are kept in memory, because a disk would make their builds several times as long. */
const STORE_BYTES = 4 * 1024 ** 3
const ARM64_LIBRARIES = '/usr/aarch64-linux-gnu/lib'

/**
 * Starts a registry of images on this machine, with a store of buildah's own for both ends of it. `base` is a stand-in for the base
 * image of the Dockerfile on amd64 and arm64, made of Debian's packages. `bin` has a buildah that uses all that.
 */
export async function startRegistry() {
  const disk = mountDisk(STORE_BYTES)
  const file = (name: string) => join(disk.path, name)
  await Bun.write(
    file('config.yml'),
    `version: 0.1\nstorage: { filesystem: { rootdirectory: ${file('registry')} } }\nhttp: { addr: '127.0.0.1:0' }\n`,
  )
  const { child, ended, stderr } = startProgram(['docker-registry', 'serve', file('config.yml')])
  const address = await until('the registry listens', async (see) => {
    if (child.exitCode !== null) throw new Error(`the registry ended: ${(await ended).stderr}`)
    return /listening on (127\.0\.0\.1:\d+)/.exec(see(stderr()))?.[1]
  })
  await Bun.write(
    file('storage.conf'),
    `[storage]\ndriver = "vfs"\ngraphroot = "${file('root')}"\nrunroot = "${file('run')}"\n`,
  )
  mkdirSync(file('bin'))
  writeFileSync(file('bin/buildah'), buildahWithoutTls(file('storage.conf')), { mode: 0o755 })
  const buildah = async (...args: readonly string[]): Promise<string> =>
    (await runWell([file('bin/buildah'), ...args])).trim()
  const dispose = async () => {
    child.kill()
    await ended
    await runIn(['umount', '--recursive', '--lazy', file('root')])
    disk[Symbol.dispose]()
  }
  try {
    await pushBase(buildah, `${address}/base`, file('arm64'))
  } catch (error) {
    await dispose()
    throw error
  }
  return { address, base: `${address}/base`, bin: file('bin'), buildah, [Symbol.asyncDispose]: dispose }
}

/** Stands in front of buildah, because the registry has no TLS. */
const buildahWithoutTls = (storage: string) => `#!/bin/sh
export CONTAINERS_STORAGE_CONF=${storage}
case $1 in
  manifest) if [ "$2" = push ]; then shift 2; set -- manifest push --tls-verify=false "$@"; fi ;;
  build | from) command=$1; shift; set -- "$command" --tls-verify=false "$@" ;;
esac
exec ${Bun.which('buildah')} "$@"
`

async function pushBase(buildah: (...args: readonly string[]) => Promise<string>, name: string, arm64: string) {
  using amd64 = await makeBaseRoot()
  mkdirSync(arm64)
  cpSync(ARM64_LIBRARIES, join(arm64, 'lib'), { recursive: true })
  await buildah('manifest', 'create', name)
  for (const [arch, root] of Object.entries({ amd64: amd64.path, arm64 })) {
    const container = await buildah('from', 'scratch')
    await buildah('add', '--quiet', container, root, '/')
    await buildah('config', `--arch=${arch}`, '--os=linux', container)
    await buildah('commit', '--quiet', '--rm', `--manifest=${name}`, container)
  }
  await buildah('manifest', 'push', '--quiet', '--all', name, `docker://${name}`)
}
