import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json'
import { makeFolder } from '../support/folder.ts'
import { makePackages } from './packages.ts'
import { copyProject } from './project-copy.ts'
import { addDocuments } from './release.ts'
import { PROJECT, runWell } from './run.ts'
import { PROJECT_INSIDE } from './systemd.ts'

/** The time of the packages that tests make. */
const MADE_AT = new Date('2001-02-03T04:05:06Z')
/** A version after this one. */
const NEXT_VERSION = `${manifest.version}.1`

/** What differs from the packages of a release. */
interface PackagesOptions {
  readonly arch?: string
  readonly version?: string
  /** Text at the end of the settings file. */
  readonly settings?: string
}

/** Makes both packages with an executable, in a folder that a `bootSystemd` sees, until it is disposed of. */
export async function packagesWith(executable: string, options: PackagesOptions = {}) {
  const { arch = process.arch, version = manifest.version, settings = '' } = options
  using from = makeFolder()
  cpSync(executable, join(from.path, 'plantstore'))
  await addDocuments(from.path, MADE_AT)
  const settingsFile = join(from.path, 'contrib/packages/plantstore.env')
  await Bun.write(settingsFile, (await Bun.file(settingsFile).text()) + settings)
  mkdirSync(join(PROJECT, 'dist'), { recursive: true })
  const into = makeFolder(join(PROJECT, 'dist'))
  const names = await makePackages({ folder: from.path, into: into.path, arch, version, madeAt: MADE_AT })
  const [deb = '', rpm = ''] = names.map((name) => join(into.path, name))
  return {
    deb,
    rpm,
    /** The paths in a `bootSystemd`. */
    inside: { deb: deb.replace(PROJECT, PROJECT_INSIDE), rpm: rpm.replace(PROJECT, PROJECT_INSIDE) },
    [Symbol.dispose]: into[Symbol.dispose],
  }
}

/** Makes the packages of a next version, which has one migration more and another settings file. */
export async function packagesOfNextVersion() {
  using copy = await copyProject()
  symlinkSync(join(PROJECT, 'node_modules'), join(copy.path, 'node_modules'))
  const migrate = join(copy.path, 'src/store/sqlite/format.ts')
  const text = await Bun.file(migrate).text()
  const changed = text.replace(/(const MIGRATIONS: .*)\]$/m, "$1, 'create table next_version (id integer) strict']")
  if (changed === text) throw new Error('the list of migrations looks different')
  await Bun.write(migrate, changed)
  await runWell(['bun', 'run', 'compile', '--outfile', 'dist/plantstore'], copy.path)
  const settings = '\n# A setting of the next version.\n'
  return await packagesWith(join(copy.path, 'dist/plantstore'), { version: NEXT_VERSION, settings })
}
