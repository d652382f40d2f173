import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { EXECUTABLE } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { PROJECT, runIn, runWell } from './run.ts'

const KEPT = join(PROJECT, 'dist/debian')
const APT_GET = ['apt-get', '--option=APT::Sandbox::User=root', '--quiet']

/** The user that distroless images call nonroot. */
export const NONROOT = 65532

/** The path of the executable in an image. */
export const PLANTSTORE = '/usr/local/bin/plantstore'

/** The Debian packages of gcr.io/distroless/base-debian12, as its repository lists them, except certificates. */
const DISTROLESS_BASE = ['base-files', 'media-types', 'netbase', 'tzdata', 'libc6', 'libssl3']

/** Makes the root file system of distroless *base*, until it is disposed of. Its only program is the dynamic linker. */
export async function makeBaseRoot() {
  const folder = makeFolder()
  const root = join(folder.path, 'root')
  try {
    await unpack(DISTROLESS_BASE, root)
    addUsers(root)
    makeDirectory(join(root, 'tmp'), 0o1777, 0)
    makeDirectory(join(root, 'home/nonroot'), 0o700, NONROOT)
  } catch (error) {
    folder[Symbol.dispose]()
    throw error
  }
  return { path: root, [Symbol.dispose]: folder[Symbol.dispose] }
}

/** Makes the root file system of the image that the Dockerfile describes, with the executable under test. */
export async function makeImageRoot() {
  const root = await makeBaseRoot()
  addProgram(root.path, EXECUTABLE || 'none', PLANTSTORE)
  makeDirectory(join(root.path, 'data'), 0o755, NONROOT)
  return root
}

/** Unpacks Debian packages of this machine's release and architecture into a folder, without running any script. */
export async function unpack(packages: readonly string[], root: string): Promise<void> {
  mkdirSync(root, { recursive: true })
  for (const file of await download(packages)) await runWell(['dpkg-deb', '--extract', file, root])
}

/** Downloads packages, or finds their files from the last time. To ask apt for their versions takes longer than a container. */
async function download(packages: readonly string[]): Promise<readonly string[]> {
  const files = existsSync(KEPT) ? readdirSync(KEPT).filter((file) => file.endsWith('.deb')) : []
  const kept = packages.flatMap((name) => files.find((file) => file.startsWith(`${name}_`)) ?? [])
  if (kept.length === packages.length) return kept.map((file) => join(KEPT, file))
  using folder = makeFolder()
  const get = [...APT_GET, 'download', ...packages]
  // The list of packages can be missing or outdated.
  if ((await runIn(get, folder.path)).exitCode !== 0) {
    await runWell([...APT_GET, 'update'])
    await runWell(get, folder.path)
  }
  mkdirSync(KEPT, { recursive: true })
  return readdirSync(folder.path).map((name) => {
    // Other tests may download the same file. A rename makes it appear whole.
    const partial = join(KEPT, `${name}.${crypto.randomUUID()}`)
    cpSync(join(folder.path, name), partial)
    renameSync(partial, join(KEPT, name))
    return join(KEPT, name)
  })
}

const PASSWD = `root:x:0:0:root:/root:/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin
nonroot:x:${NONROOT}:${NONROOT}:nonroot:/home/nonroot:/sbin/nologin
`

function addUsers(root: string): void {
  writeFileSync(join(root, 'etc/passwd'), PASSWD)
  writeFileSync(join(root, 'etc/group'), `root:x:0:\nnobody:x:65534:\nnonroot:x:${NONROOT}:\n`)
  writeFileSync(join(root, 'etc/nsswitch.conf'), 'hosts: files dns\n')
}

/** Makes a folder with exactly this mode, and gives it to a user. */
export function makeDirectory(path: string, mode: number, user: number): void {
  rmSync(path, { recursive: true, force: true })
  mkdirSync(path, { recursive: true })
  chmodSync(path, mode)
  chownSync(path, user, user)
}

/** Adds a program to a root file system. */
export function addProgram(root: string, program: string, path: string): void {
  mkdirSync(join(root, path, '..'), { recursive: true })
  cpSync(program, join(root, path))
  chmodSync(join(root, path), 0o755)
}
