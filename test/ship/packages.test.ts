import { afterAll, beforeAll, describe, expect } from 'bun:test'
import { SCHEMA_VERSION } from '../../src/store/sqlite/format.ts'
import { testLong } from '../fault/rounds.ts'
import { blockAfter } from '../support/docs.ts'
import { EXECUTABLE } from '../support/executable.ts'
import { IS_LONG } from '../support/long.ts'
import { lacks } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { packagesOfNextVersion, packagesWith } from './package-files.ts'
import { bootMachine, type Machine, makeDebianRoot, PACKAGE_ROOTS } from './package-root.ts'

const DATABASE = '/var/lib/plantstore/plantstore.db'
const BACKUPS = '/var/backups/plantstore'
const SETTINGS = '/etc/plantstore/plantstore.env'
const UNITS = ['plantstore.service', 'plantstore-backup.timer']
const NEXT_SCHEMA = SCHEMA_VERSION + 1
const TOO_NEW = `has schema version ${NEXT_SCHEMA}, but this executable knows versions up to ${SCHEMA_VERSION}: use the newer executable.`
/** More than the settings of the tests allow. */
const LARGE_BODY = JSON.stringify({ id: 2, name: 'x'.repeat(2000) })
const JSON_TYPE = ['--header', 'content-type: application/json']

/** How a distribution calls it. */
interface Packager {
  readonly name: string
  readonly install: (file: string) => readonly string[]
  readonly downgrade: (file: string) => readonly string[]
  readonly remove: readonly string[]
}

const APT: Packager = {
  name: 'apt',
  install: (file) => ['apt-get', 'install', '--yes', file],
  downgrade: (file) => ['apt-get', 'install', '--yes', '--allow-downgrades', file],
  remove: ['apt-get', 'remove', '--yes', 'plantstore'],
}
/** The database of rpm on Debian knows no other package. */
const RPM: Packager = {
  name: 'rpm',
  install: (file) => ['rpm', '--upgrade', '--nodeps', file],
  downgrade: (file) => ['rpm', '--upgrade', '--nodeps', '--oldpackage', file],
  remove: ['rpm', '--erase', 'plantstore'],
}

/** The active units, and whether each is enabled. */
const states = async (machine: Machine) =>
  Promise.all(
    UNITS.map(async (unit) => Object.values(await machine.show(['ActiveState', 'UnitFileState'], unit)).join(' ')),
  )

const schemaOf = async (machine: Machine) =>
  /^schema +(\d+)/m.exec(await machine.run(['plantstore', 'status', '--database', DATABASE]))?.[1]

/** Prints something if the old server stopped before the new executable was in its place, both to the second. */
const STOPPED_BEFORE_UNPACKED = `stopped=$(date +%s --date "$(systemctl show --value --property=InactiveEnterTimestamp plantstore)")
[ "$stopped" -ge "$(stat --format=%Z /usr/bin/plantstore)" ] || echo "stopped at $stopped, $(stat --format=%Z /usr/bin/plantstore)"`

/** Runs the command that the package has printed, and returns the token. */
async function firstToken(machine: Machine, printed: string): Promise<string> {
  const command = /^ +(runuser .*token create .*)$/m.exec(printed)?.[1] ?? 'exit 1'
  return (await machine.shell(command)).trim()
}

/** Creates plants while the next version replaces this one, which loses none and keeps the states of the units. */
async function upgrade(machine: Machine, token: string, install: readonly string[]): Promise<string> {
  const statesBefore = await states(machine)
  const load = machine.load(token, 1000)
  const grown = async (than: number) => (await machine.list(token).catch(() => [])).length > than
  await until('the load has created plants', () => grown(100))
  const printed = await machine.run(install)
  // systemctl returns once the server is ready, and so does the package.
  expect(await schemaOf(machine)).toBe(String(NEXT_SCHEMA))
  const before = (await machine.list(token)).length
  await until('the load has created plants again', () => grown(before + 100))
  const { acknowledged, refused, longestGapMs } = await load.end()
  const names = new Set((await machine.list(token)).map(({ name }) => name))
  console.log(`${acknowledged.length} plants acknowledged, ${refused} not, gap ${longestGapMs} ms: ${install[0]}`)
  expect(acknowledged.filter((id) => !names.has(`Plant ${id}`))).toEqual([])
  expect(refused).toBeGreaterThan(0)
  expect(await machine.shell(STOPPED_BEFORE_UNPACKED)).toBe('')
  expect(await states(machine)).toEqual(statesBefore)
  return printed
}

/** Removes a package, and with it the program. The server ends. */
async function remove(machine: Machine, packager: Packager): Promise<void> {
  await machine.run(packager.remove)
  expect((await machine.tryRun(['plantstore', '--version'])).exitCode).not.toBe(0)
  expect((await machine.show(['ActiveState'])).ActiveState).toBe('inactive')
}

describe.skipIf(!IS_LONG || lacks(...PACKAGE_ROOTS))('a package on Debian 12', () => {
  let root: Awaited<ReturnType<typeof makeDebianRoot>>
  let packages: Awaited<ReturnType<typeof packagesWith>>
  let next: Awaited<ReturnType<typeof packagesOfNextVersion>>

  beforeAll(async () => {
    root = await makeDebianRoot('bookworm', ['systemd', 'systemd-sysv', 'ucf', 'curl', 'rpm'])
    packages = await packagesWith(EXECUTABLE || 'none')
    next = await packagesOfNextVersion()
  })
  afterAll(() => {
    for (const made of [root, packages, next]) made?.[Symbol.dispose]()
  })

  testLong(
    'for apt is installed, used, upgraded under load, not downgraded, removed, installed again and purged',
    async () => {
      await using machine = await bootMachine(root.path)

      const installed = await machine.run(APT.install(packages.inside.deb))
      expect(installed).toContain('serves http://127.0.0.1:3000')
      expect(installed.trim().split('\n').at(-1)).toContain('plantstore token create --user me')
      expect(await states(machine)).toEqual(['active enabled', 'active enabled'])

      const token = await firstToken(machine, installed)
      const used = await use(machine, token)

      await machine.run(['systemctl', 'disable', '--now', 'plantstore-backup.timer'])
      const printed = await upgrade(machine, token, APT.install(next.inside.deb))
      expect(printed).not.toContain('token create')
      expect(await kept(machine)).toEqual(used)
      expect(await machine.run(['cat', `${SETTINGS}.ucf-dist`])).toContain('# A setting of the next version.')

      await expectNoDowngrade(machine, token, APT, packages.inside.deb, next.inside.deb)

      await remove(machine, APT)
      expect(await kept(machine)).toEqual(used)

      const plants = (await reinstall(machine, token, APT.install(next.inside.deb))).length
      expect(plants).toBeGreaterThan(100)
      expect(await states(machine)).toEqual(['active enabled', 'inactive disabled'])

      const purged = (await machine.run(['apt-get', 'purge', '--yes', 'plantstore'])).replaceAll('\r', '')
      expect(purged).toContain('Kept, because it is not empty: /var/lib/plantstore\n')
      expect(purged).toContain('Kept, because it is not empty: /var/backups/plantstore\n')
      expect(purged).toContain('the user plantstore\n')
      expect(await machine.tryRun(['ls', '/etc/plantstore'])).toMatchObject({ stdout: '' })
      expect(await machine.run(['find', '/etc/systemd/system', '-name', '*.wants', '-not', '-empty'])).toBe('')
      expect((await kept(machine)).backups).toEqual(used.backups)
      expect(await machine.run(['stat', '-c', '%U %a', DATABASE])).toBe('plantstore 600\n')

      const again = await machine.run(APT.install(next.inside.deb))
      expect(again).toContain('serves http://127.0.0.1:3000')
      expect(again).not.toContain('token create')
      expect((await machine.list(token)).length).toBe(plants)
      await expectNothingStays(machine, 'apt-get purge --yes')
    },
  )

  testLong(
    'for rpm is installed, started as it says, used, upgraded under load, not downgraded, removed and installed again',
    async () => {
      await using machine = await bootMachine(root.path)
      // As on Fedora and RHEL.
      await machine.shell(
        'mkdir -p /etc/systemd/system-preset && echo "disable *" > /etc/systemd/system-preset/99.preset',
      )

      const installed = await machine.run(RPM.install(packages.inside.rpm))
      expect(await states(machine)).toEqual(['inactive disabled', 'inactive disabled'])
      await machine.shell(/^ +(systemctl enable .*)$/m.exec(installed)?.[1] ?? 'exit 1')
      await machine.untilHealthy()
      expect(await states(machine)).toEqual(['active enabled', 'active enabled'])

      const token = await firstToken(machine, installed)
      const used = await use(machine, token)

      expect(await upgrade(machine, token, RPM.install(next.inside.rpm))).toBe('')
      expect(await kept(machine)).toEqual(used)
      expect(await machine.run(['cat', `${SETTINGS}.rpmnew`])).toContain('# A setting of the next version.')

      await expectNoDowngrade(machine, token, RPM, packages.inside.rpm, next.inside.rpm)

      await remove(machine, RPM)
      expect((await kept(machine, `${SETTINGS}.rpmsave`)).backups).toEqual(used.backups)

      expect(await machine.run(RPM.install(next.inside.rpm))).not.toContain('token create')
      expect((await reinstall(machine, token, ['systemctl', 'start', 'plantstore'])).length).toBeGreaterThan(100)
      await expectNothingStays(machine, 'rpm --erase')
    },
  )
})

/** Creates a plant, changes the settings, and makes the backup of a night. Resolves as `kept`, with one backup. */
async function use(machine: Machine, token: string) {
  expect(await machine.curl(token, [...JSON_TYPE, '--data', '{"id":1,"name":"Fern"}'])).toBe('{"name":"Fern"}')
  await machine.shell(`echo PLANTSTORE_MAX_BODY=1KiB >> ${SETTINGS}`)
  await machine.run(['systemctl', 'restart', 'plantstore'])
  await machine.untilHealthy()
  expect(await machine.curl(token, [...JSON_TYPE, '--data', LARGE_BODY])).toContain('"error":41301')
  await machine.run(['systemctl', 'start', 'plantstore-backup.service'])
  const used = await kept(machine)
  expect(used.backups).toHaveLength(1)
  expect(used.mode).toBe('root plantstore 640\n')
  return used
}

/** The settings file with its mode, and the names of the backups. */
async function kept(machine: Machine, settings = SETTINGS) {
  const [backups, text, mode] = await Promise.all([
    machine.run(['ls', BACKUPS]),
    machine.shell(`cat ${settings} 2> /dev/null || true`),
    machine.shell(`stat -c '%U %G %a' ${settings} 2> /dev/null || true`),
  ])
  return { backups: backups.trim().split('\n'), settings: text, mode }
}

/** Installs this version over the next one, which the schema refuses, and then the next one again. */
async function expectNoDowngrade(machine: Machine, token: string, packager: Packager, old: string, next: string) {
  const plants = await machine.list(token)
  await machine.run(packager.downgrade(old))
  await until('the old server has given up', async (see) => see(await machine.show(['Result'])).Result !== 'success')
  expect(await machine.log()).toContain(TOO_NEW)
  expect((await machine.show(['ExecMainStatus'])).ExecMainStatus).toBe('3')
  await machine.run(packager.install(next))
  await machine.run(['systemctl', 'reset-failed', 'plantstore'])
  await machine.run(['systemctl', 'start', 'plantstore'])
  await machine.untilHealthy()
  expect(await machine.list(token)).toEqual(plants)
}

/** Runs the commands of the page that leave nothing, with a packager that asks nothing. The test has made the log. */
async function expectNothingStays(machine: Machine, purge: string): Promise<void> {
  const commands = await blockAfter('commands of: the end of a package')
  await machine.shell(commands.replace('apt purge', purge))
  const found = "find / -xdev -iname '*plantstore*' -not -path /opt/plantstore -not -path /var/log/plantstore.log"
  expect(await machine.shell(found)).toBe('')
  expect(await machine.tryRun(['getent', 'passwd', 'plantstore'])).toMatchObject({ exitCode: 2 })
  expect(await machine.tryRun(['getent', 'group', 'plantstore'])).toMatchObject({ exitCode: 2 })
}

/** Resolves to the plants once a server answers again. */
async function reinstall(machine: Machine, token: string, start: readonly string[]) {
  await machine.run(start)
  await machine.untilHealthy()
  return machine.list(token)
}
