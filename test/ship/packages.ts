import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json'
import { runWell } from './run.ts'

/** The packages of a machine's kind: what they call it, and the packagers of nfpm. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' }
const PACKAGERS = ['deb', 'rpm']

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
    copyright: copyright(await Bun.file(join(folder, 'LICENSE')).text()),
    'plantstore.1.gz': await compress(join(folder, 'share/man/man1/plantstore.1')),
  }
  for (const [name, content] of Object.entries(made)) {
    await Bun.write(join(folder, 'packaging', name), content)
    chmodSync(join(folder, 'packaging', name), 0o644)
  }
  const environment = [
    `HOMEPAGE=${manifest.homepage}`,
    `MAINTAINER=${manifest.author}`,
    `VERSION=${version}`,
    `ARCH=${ARCHITECTURES[arch]}`,
    `SOURCE_DATE_EPOCH=${+madeAt / 1000}`,
  ]
  const nfpm = ['env', ...environment, 'nfpm', 'package', '--config=contrib/packages/nfpm.yaml', `--target=${into}`]
  const printed = await Promise.all(PACKAGERS.map((packager) => runWell([...nfpm, `--packager=${packager}`], folder)))
  const names = printed.map((text) => /^created package: .*\/(\S+)$/m.exec(text)?.[1] ?? text)
  await runWell(['sh', '-euc', WITHOUT_CONFFILES, join(into, names[0] ?? '')])
  return names
}

/** Takes the file `conffiles` out of a package for Debian, because nfpm writes one that is empty. */
const WITHOUT_CONFFILES = `
cd "$(mktemp --directory)"
ar x "$0" control.tar.gz
mkdir control
tar --extract --preserve-permissions --file control.tar.gz --directory control
rm control/conffiles control.tar.gz
cd control
tar --create --sort=name --owner=root:0 --group=root:0 --use-compress-program='gzip --no-name' --file ../control.tar.gz ./*
ar rD "$0" ../control.tar.gz
rm --recursive "$(dirname "$PWD")"
`

/** The licence in the form that Debian's tools read (DEP-5). Its text begins with a title and the line of the copyright. */
function copyright(license: string): string {
  const [, , holder = '', , ...text] = license.trim().split('\n')
  return `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: plantstore
Upstream-Contact: ${manifest.author}
Source: ${manifest.homepage}
Comment: The executable contains Bun and other packages. Their licences are in
 /usr/share/doc/plantstore/THIRD_PARTY_LICENSES.

Files: *
Copyright: ${holder.replace('Copyright (c) ', '')}
License: Expat
${text.map((line) => ` ${line || '.'}`).join('\n')}
`
}

/** Compresses a file. The header of gzip has no time and no name. */
const compress = async (path: string) => Bun.gzipSync(await Bun.file(path).bytes(), { level: 9 })

/** The changelog in the form of packages, which names a version and refers to the one for people. */
const changelog = (version: string, madeAt: Date): string =>
  Bun.YAML.stringify([
    {
      semver: `${version}-1`,
      date: madeAt.toISOString(),
      packager: manifest.author,
      deb: { urgency: 'medium', distributions: ['stable'] },
      changes: [{ note: 'The changes are in /usr/share/doc/plantstore/CHANGELOG.md.' }],
    },
  ])
