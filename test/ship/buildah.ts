import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { mountDisk } from '../support/disk.ts'
import { program } from '../support/requirement.ts'
import { addProgram, makeBaseRoot, unpack } from './root.ts'
import { PROJECT, runIn, runWell } from './run.ts'

const BUILD_IMAGE = 'localhost/bun'
const FINAL_IMAGE = 'localhost/distroless-base'
const IMAGE = 'localhost/plantstore'
/** Images and what is installed in them are kept in memory: a disk makes it several times as long. */
const STORE_BYTES = 3 * 1024 ** 3
/** What the Dockerfile and `bun run build` start in the image that builds. */
const BUILD_PROGRAMS = ['sh', 'ls', 'mkdir', 'chown']

/** What an image says of how it is run, in the format of Docker. */
export interface ImageConfiguration {
  readonly User: string
  readonly Env: readonly string[]
  readonly Entrypoint: readonly string[]
  readonly Cmd: readonly string[]
  readonly Volumes: Readonly<Record<string, object>>
  readonly ExposedPorts: Readonly<Record<string, object>>
  readonly Labels: Readonly<Record<string, string>>
  readonly Healthcheck: { readonly Test: readonly string[] }
}

/**
 * Builds the Dockerfile in a store of its own, gone after its use. Its base images are stand-ins, made of Debian's packages:
 * for that of Bun with this Bun and a shell, for that of distroless without. Packages come from Bun's cache.
 */
export async function buildDockerfile() {
  const disk = mountDisk(STORE_BYTES)
  const store = ['--root', join(disk.path, 'root'), '--runroot', join(disk.path, 'run')]
  const buildah = (...args: readonly string[]) => runWell(['buildah', ...store, ...args])
  const dispose = async () => {
    await runIn(['buildah', ...store, 'umount', '--all'])
    await runIn(['buildah', ...store, 'rm', '--all'])
    await runIn(['umount', '--lazy', join(disk.path, 'root/overlay')])
    disk[Symbol.dispose]()
  }
  try {
    await makeStandIns(buildah)
    const cache = (await runWell(['bun', 'pm', 'cache'])).trim()
    const said = await buildah(
      'build',
      '--isolation=chroot',
      '--pull-never',
      '--format=docker',
      `--build-arg=BUILD_IMAGE=${BUILD_IMAGE}`,
      `--build-arg=FINAL_IMAGE=${FINAL_IMAGE}`,
      `--volume=${cache}:/root/.bun/install/cache`,
      `--tag=${IMAGE}`,
      PROJECT,
    )
    const container = (await buildah('from', '--pull-never', IMAGE)).trim()
    const root = (await buildah('mount', container)).trim()
    const inspected = JSON.parse(await buildah('inspect', '--type=image', IMAGE))
    const configuration: ImageConfiguration = inspected.Docker.config
    return { root, configuration, said, [Symbol.asyncDispose]: dispose }
  } catch (error) {
    await dispose()
    throw error
  }
}

async function makeStandIns(buildah: (...args: readonly string[]) => Promise<string>): Promise<void> {
  using base = await makeBaseRoot()
  await makeImage(buildah, FINAL_IMAGE, base.path)
  await unpack(['busybox-static'], base.path)
  mkdirSync(join(base.path, 'usr/local/bin'), { recursive: true })
  for (const name of BUILD_PROGRAMS) symlinkSync('/bin/busybox', join(base.path, 'bin', name))
  addProgram(base.path, process.execPath, '/usr/local/bin/bun')
  await makeImage(buildah, BUILD_IMAGE, base.path)
}

async function makeImage(buildah: (...args: readonly string[]) => Promise<string>, name: string, root: string) {
  const container = (await buildah('from', 'scratch')).trim()
  await buildah('add', '--quiet', container, root, '/')
  await buildah('config', '--env=PATH=/usr/local/bin:/usr/bin:/bin', '--env=HOME=/root', container)
  await buildah('commit', '--quiet', '--rm', container, name)
}

export const BUILDAH = program('buildah')
