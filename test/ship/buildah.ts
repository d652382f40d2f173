import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { mountDisk } from '../support/disk.ts'
import { program } from '../support/requirement.ts'
import { addProgram, makeBaseRoot, unpack } from './image-root.ts'
import { PROJECT, runIn, runWell } from './run.ts'

const BUILD_IMAGE = 'localhost/bun'
const FINAL_IMAGE = 'localhost/distroless-base'
const IMAGE = 'localhost/plantstore'
/** Images are kept in memory, because a disk would make the build several times as long. */
const STORE_BYTES = 3 * 1024 ** 3
/** The programs that the Dockerfile and `bun run build` start in the build image. */
const BUILD_PROGRAMS = ['sh', 'ls', 'mkdir', 'chown']

/** How an image is run, in Docker's format. */
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
 * Builds the Dockerfile in a store of its own, until it is disposed of. Its base images are stand-ins made of Debian's packages;
 * the build image also has this Bun and a shell. Packages come from Bun's cache.
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
    await buildah(
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
    return { root, configuration, [Symbol.asyncDispose]: dispose }
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
