import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json'
import { runWell } from './run.ts'

/** The packages of a machine's kind: what they call it, and the packagers of nfpm. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }
const PACKAGERS = ['deb', 'rpm']

const MAINTAINER = 'the Plant Store maintainers <maintainers@plantstore.invalid>'

interface PackagesOptions {
  /** The folder of an archive: the executable, the documents, `contrib` and the licences. */
  readonly folder: string
  /** The folder for the packages. */
  readonly into: string
  /** The kind of machine, as in `process.arch`. */
  readonly arch: string
  readonly version: string
  readonly madeAt: Date
}

/**
 * Makes the packages for Debian and for Red Hat, as contrib/packages/nfpm.yaml describes them: always the same bytes for the same
 * files, version and time. Returns the names of their files.
 */
export async function makePackages({ folder, into, arch, version, madeAt }: PackagesOptions): Promise<string[]> {
  const made: Readonly<Record<string, string | Uint8Array>> = {
    'changelog.yaml': changelog(version, madeAt),
    'changelog.gz': await compress(join(folder, 'CHANGELOG.md')),
    'plantstore.1.gz': await compress(join(folder, 'share/man/man1/plantstore.1')),
  }
  for (const [name, content] of Object.entries(made)) {
    await Bun.write(join(folder, 'packaging', name), content)
    chmodSync(join(folder, 'packaging', name), 0o644)
  }
  const environment = [
    `HOMEPAGE=${manifest.homepage}`,
    `VERSION=${version}`,
    `ARCH=${ARCHITECTURES[arch]}`,
    `SOURCE_DATE_EPOCH=${+madeAt / 1000}`,
  ]
  const nfpm = ['env', ...environment, 'nfpm', 'package', '--config=contrib/packages/nfpm.yaml', `--target=${into}`]
  const printed = await Promise.all(PACKAGERS.map((packager) => runWell([...nfpm, `--packager=${packager}`], folder)))
  return printed.map((text) => /^created package: .*\/(\S+)$/m.exec(text)?.[1] ?? text)
}

/** Compresses a file. The header of gzip has no time and no name. */
const compress = async (path: string) => Bun.gzipSync(await Bun.file(path).bytes(), { level: 9 })

/** The changelog in the form of packages, which names a version and refers to the one for people. */
const changelog = (version: string, madeAt: Date): string =>
  Bun.YAML.stringify([
    {
      semver: `${version}-1`,
      date: madeAt.toISOString(),
      packager: MAINTAINER,
      deb: { urgency: 'medium', distributions: ['stable'] },
      changes: [{ note: 'The changes are in /usr/share/doc/plantstore/CHANGELOG.md.' }],
    },
  ])
