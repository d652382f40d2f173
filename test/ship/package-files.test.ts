import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json'
import { testLong } from '../fault/rounds.ts'
import { PAGES } from '../support/docs.ts'
import { COMPILED, EXECUTABLE, runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { IS_LONG } from '../support/long.ts'
import { lacks, program, type Requirement } from '../support/requirement.ts'
import { packagesWith } from './package-files.ts'
import { makeDebianRoot } from './package-root.ts'
import { runnerFor, runnerOf, TARGETS } from './release.ts'
import { PROJECT, runIn, runWell } from './run.ts'
import { bootSystemd, SYSTEMD } from './systemd.ts'

const VERSION = `${manifest.version}-1`

/** The documentation and the files of contrib: all that messages, alerts and pages name. */
const DOCUMENTS = [
  ...[...PAGES, 'CHANGELOG.md'],
  ...(await runWell(['git', 'ls-files', 'contrib', 'docs/pictures/*.png', 'docs/pictures/*.svg'])).trim().split('\n'),
]
/** Their folders. A package for Red Hat lists folders, so that it removes them. */
const FOLDERS = [
  ...new Set(
    DOCUMENTS.flatMap((file) =>
      file.split('/').map((_, depth, parts) =>
        parts
          .slice(0, depth)
          .map((part) => `/${part}`)
          .join(''),
      ),
    ),
  ),
]

/** What both packages have, as `ls -l` writes modes. */
const COMMON = [
  ...DOCUMENTS.map((file) => `-rw-r--r-- /usr/share/doc/plantstore/${file}`),
  'drwxr-xr-x /etc/plantstore',
  '-rwxr-xr-x /usr/bin/plantstore',
  '-rw-r--r-- /usr/lib/systemd/system/plantstore-backup.service',
  '-rw-r--r-- /usr/lib/systemd/system/plantstore-backup.timer',
  '-rw-r--r-- /usr/lib/systemd/system/plantstore.service',
  '-rw-r--r-- /usr/lib/sysusers.d/plantstore.conf',
  '-rw-r--r-- /usr/lib/tmpfiles.d/plantstore.conf',
  '-rw-r--r-- /usr/share/bash-completion/completions/plantstore',
  '-rw-r--r-- /usr/share/fish/vendor_completions.d/plantstore.fish',
  '-rw-r--r-- /usr/share/man/man1/plantstore.1.gz',
]

describe.skipIf(lacks(COMPILED, ...['nfpm', 'dpkg-deb', 'rpm'].map(program)))('the packages', () => {
  let packages: Awaited<ReturnType<typeof packagesWith>>

  beforeAll(async () => {
    packages = await packagesWith(EXECUTABLE || 'none')
  })
  afterAll(() => packages?.[Symbol.dispose]())

  test('for Debian have these fields and these files of root, and no question of dpkg about a conffile', async () => {
    const listed = await runWell(['dpkg-deb', '--contents', packages.deb])
    const fields = 'Package Version Architecture Depends'.split(' ')
    const shown = await runWell(['dpkg-deb', '--field', packages.deb, ...fields])
    const entries = [...listed.matchAll(/^(\S+) +(?:root\/root|0\/0) .* \.(\/\S+?)\/?$/gm)]
    const files = entries.filter(([, mode = '', path]) => mode.startsWith('-') || path === '/etc/plantstore')

    expect(shown).toBe(`Package: plantstore
Version: ${VERSION}
Architecture: ${process.arch === 'x64' ? 'amd64' : 'arm64'}
Depends: libc6 (>= 2.17), systemd | systemd-standalone-sysusers | systemd-sysusers, systemd | systemd-standalone-tmpfiles | systemd-tmpfiles, ucf
`)
    expect(files.map(([, mode, path]) => `${mode} ${path}`).sort()).toEqual(
      [
        ...COMMON,
        '-rw-r--r-- /usr/share/doc/plantstore/THIRD_PARTY_LICENSES',
        '-rw-r--r-- /usr/share/doc/plantstore/changelog.Debian.gz',
        '-rw-r--r-- /usr/share/doc/plantstore/copyright',
        '-rw-r--r-- /usr/share/lintian/overrides/plantstore',
        '-rw-r--r-- /usr/share/plantstore/plantstore.env',
        '-rw-r--r-- /usr/share/zsh/vendor-completions/_plantstore',
      ].sort(),
    )
    expect(await runWell(['dpkg-deb', '--info', packages.deb])).not.toContain('conffiles')
  })

  test('for Red Hat have these fields and these files of root, and one configuration file', async () => {
    const query = (...what: readonly string[]) => runWell(['rpm', '--query', ...what, '--package', packages.rpm])
    const format =
      '%{NAME} %{VERSION}-%{RELEASE} %{ARCH} %{LICENSE}\\n[%{FILEMODES:perms} %{FILEUSERNAME} %{FILENAMES}\\n]'
    const [fields, ...entries] = (await query('--queryformat', format)).trim().split('\n')

    expect(fields).toBe(`plantstore ${VERSION} ${process.arch === 'x64' ? 'x86_64' : 'aarch64'} MIT`)
    expect(entries.map((entry) => entry.replace(' root ', ' ')).sort()).toEqual(
      [
        ...COMMON,
        '-rw-r----- /etc/plantstore/plantstore.env',
        ...FOLDERS.map((folder) => `drwxr-xr-x /usr/share/doc/plantstore${folder}`),
        'drwxr-xr-x /usr/share/licenses/plantstore',
        '-rw-r--r-- /usr/share/licenses/plantstore/LICENSE',
        '-rw-r--r-- /usr/share/licenses/plantstore/THIRD_PARTY_LICENSES',
        '-rw-r--r-- /usr/share/zsh/site-functions/_plantstore',
      ].sort(),
    )
    expect(await query('--configfiles')).toBe('/etc/plantstore/plantstore.env\n')
    expect(await query('--requires')).toContain('glibc >= 2.17\n')
  })

  test.skipIf(!IS_LONG || lacks(SYSTEMD, program('ucf'))).each([
    ['deb', ['dpkg', '--force-unsafe-io', '--install']],
    ['rpm', ['rpm', '--upgrade', '--nodeps', '--replacepkgs']],
  ] as const)(
    'let root and the service read the settings, and nobody else, also after an upgrade: %s',
    async (kind, install) => {
      await using machine = await bootSystemd()
      const shell = (script: string) => machine.tryRun(['/bin/sh', '-euc', script])
      const settings = '/etc/plantstore/plantstore.env'
      const facts = () => machine.run(['stat', '--format=%U %G %a', settings])
      await machine.run([...install, packages.inside[kind]])
      const installed = await facts()
      const created = await shell('runuser -u plantstore -- plantstore token create --user me')
      const refused = await shell(`chown nobody:root ${settings} && chmod 606 ${settings} && plantstore status`)
      await machine.run([...install, packages.inside[kind]])

      expect([installed, await facts()]).toEqual(Array(2).fill('root plantstore 640\n'))
      expect([created.exitCode, refused.exitCode]).toEqual([0, 2])
      expect((await shell('plantstore status')).stdout).toMatch(/^tokens +1$/m)
      expect((await shell('runuser -u nobody -- plantstore status')).exitCode).toBe(2)
    },
  )
})

/** rpmlint unpacks the absolute paths of the package onto the machine, so its machine is read-only but for a temporary folder. */
const READ_ONLY = [
  ...['unshare', '--mount', '/bin/sh', '-euc'],
  'mount -o remount,bind,ro / && mount -t tmpfs tmpfs /var/tmp && TMPDIR=/var/tmp exec "$0" "$@"',
]
const TOOLS = ['nfpm', 'dpkg-deb', 'rpm', 'rpm2cpio', 'cpio', 'lintian', 'rpmlint'].map(program)

for (const target of TARGETS.filter(({ name }) => name.startsWith('linux-'))) {
  const { name, arch } = target
  describe.skipIf(!IS_LONG || lacks(...TOOLS, runnerFor(target)))(`the packages for ${name}`, () => {
    testLong(
      'unpack to an executable that runs, and lintian and rpmlint find nothing but what is overridden',
      async () => {
        using folder = makeFolder()
        // lintian works as another user if root starts it.
        chmodSync(folder.path, 0o755)
        const executable = join(folder.path, 'plantstore')
        await runWell(['bun', 'run', 'compile', `--target=bun-${name}`, '--outfile', executable])
        using packages = await packagesWith(executable, { arch })
        const [deb, rpm] = [join(folder.path, 'deb'), join(folder.path, 'rpm')]
        await runWell(['dpkg-deb', '--extract', packages.deb, deb])
        // Its paths are absolute.
        const unpack = 'mkdir "$1" && cd "$1" && rpm2cpio "$0" | cpio -idm --quiet --no-absolute-filenames'
        await runWell(['sh', '-euc', unpack, packages.rpm, rpm])
        const versions = [deb, rpm].map((root) =>
          runPlantstore(['--version'], { command: [...(runnerOf(target) ?? []), join(root, 'usr/bin/plantstore')] }),
        )
        const lintian = ['lintian', '--display-info', '--allow-root', '--fail-on=error,warning,info', packages.deb]
        const rpmlint = ['rpmlint', `--config=${join(PROJECT, 'contrib/packages/rpmlint.toml')}`, packages.rpm]
        const printed = await Promise.all(versions)

        expect(printed.map(({ stdout }) => stdout)).toEqual(Array(2).fill(`${manifest.version}\n`))
        expect(await runIn(lintian)).toMatchObject({ exitCode: 0, stdout: '' })
        expect(await runIn([...READ_ONLY, ...rpmlint])).toMatchObject({
          exitCode: 0,
          stdout: expect.stringContaining('0 errors, 0 warnings'),
        })
        expect(existsSync(join(deb, 'usr/share/doc/plantstore/copyright'))).toBe(true)
      },
    )
  })
}

/** Debian releases without a running systemd, from the oldest that the archive has. */
const RELEASES = ['bullseye', 'bookworm', 'trixie']

describe.skipIf(!IS_LONG || lacks(COMPILED, ...['nfpm', 'mmdebstrap'].map(program)))('the package for Debian', () => {
  testLong.each(RELEASES)('is installed by apt with what it needs, and the executable runs: %s', async (release) => {
    using packages = await packagesWith(EXECUTABLE || 'none')
    using root = await makeDebianRoot(release, [], packages.deb)
    const inRoot = ['chroot', root.path]
    await runWell(['mount', '-t', 'proc', 'proc', join(root.path, 'proc')])
    const version = await runIn([...inRoot, 'plantstore', '--version'])
    const libc = await runIn([...inRoot, 'ldd', '--version'])
    const units = await runIn([...inRoot, 'systemctl', 'is-enabled', 'plantstore.service', 'plantstore-backup.timer'])
    await runWell(['umount', join(root.path, 'proc')])
    console.log(`${release}: ${libc.stdout.split('\n')[0]}`)

    expect(version).toMatchObject({ exitCode: 0, stdout: `${manifest.version}\n` })
    expect(units.stdout).toBe('enabled\nenabled\n')
  })
})

const EMULATOR = program('qemu-x86_64')
const X64: Requirement = { missing: 'this machine is no x64', isMet: () => process.arch === 'x64' }
/** Processors of qemu: the first of x86-64-v2, and one of x86-64-v1. */
const [V2, V1] = ['Nehalem', 'Conroe'].map((cpu) => ['qemu-x86_64', '-cpu', cpu])

describe.skipIf(!IS_LONG || lacks(COMPILED, EMULATOR, X64))('the executable for x64', () => {
  testLong('serves on a processor of x86-64-v2', async () => {
    using folder = makeFolder()
    const command = [...(V2 ?? []), EXECUTABLE || 'none']
    const database = join(folder.path, 'plantstore.db')
    const token = (await runPlantstore(['token', 'create', '--user', 'me', '--database', database], { command })).stdout
    await using server = await serve(database, [], { command })
    const created = await server.request('POST', '/plants', { token: token.trim(), body: { id: 1, name: 'Fern' } })

    expect([created.status, await created.json()]).toEqual([200, { name: 'Fern' }])
    expect(await server.end()).toBe(0)
  })

  testLong('is ended by the kernel on one of x86-64-v1', async () => {
    const { stdout, stderr } = await runPlantstore(['--version'], { command: [...(V1 ?? []), EXECUTABLE || 'none'] })

    expect(stdout).toBe('')
    expect(stderr).toContain('uncaught target signal 4')
  })
})
