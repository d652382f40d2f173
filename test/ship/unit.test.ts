import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import manifest from '../../package.json'
import { blockAfter, pathOfPage, readPage } from '../support/docs.ts'
import { lacks } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { runIn } from './run.ts'
import { bootSystemd, installByHand, SYSTEMD } from './systemd.ts'

const ETC = '/etc/systemd/system'
const UNIT = 'plantstore.service'
/** The settings beside the unit. */
const SETTINGS = `${ETC}/${UNIT}.d`
/** The machine of the test has a network of its own. */
const METRICS = '127.0.0.1:9464'
const UNITS = [UNIT, 'plantstore-backup.service', 'plantstore-backup.timer']
/** On a scale up to 10, which is worst. */
const EXPOSURE_MAX = 2
const BACKUP = 'plantstore-backup'
const REPORT = `${BACKUP}-failed.service`

let systemd: Awaited<ReturnType<typeof bootSystemd>>

/** Waits until the service is healthy. Resolves to its process id. */
async function healthyPid(...flags: readonly string[]): Promise<string> {
  const isHealthy = async () => (await systemd.tryRun(['plantstore', 'healthcheck', ...flags])).exitCode === 0
  await until('the service is healthy', isHealthy)
  return (await systemd.show(['MainPID'])).MainPID ?? ''
}

describe.skipIf(lacks(SYSTEMD))('the systemd unit', () => {
  let token = ''

  beforeAll(async () => {
    systemd = await bootSystemd()
    await systemd.run(['mkdir', SETTINGS])
    await systemd.write(`${SETTINGS}/metrics.conf`, `[Service]\nEnvironment=PLANTSTORE_METRICS_LISTEN=${METRICS}\n`)
    token = await installByHand(systemd)
  })
  afterAll(() => systemd?.[Symbol.asyncDispose]())

  test.each([
    [UNIT, 'docs/how-to/systemd.md'],
    [`${BACKUP}.service`, 'docs/how-to/backup-restore.md'],
  ])('has an exposure under 2, which the documentation names: %s', async (unit, page) => {
    const file = pathOfPage(`contrib/systemd/${unit}`)
    const { stdout } = await runIn(['systemd-analyze', 'security', '--offline=yes', '--no-pager', file])
    const exposure = Number(/Overall exposure level for \S+: ([\d.]+) /.exec(stdout)?.[1])

    expect(exposure).toBeLessThan(EXPOSURE_MAX)
    expect(await readPage(page)).toContain(`\`systemd-analyze security\` gives it ${exposure}`)
  })

  test.each(UNITS)('passes systemd-analyze verify: %s', async (unit) => {
    // The packages bring the manual page.
    const verify = ['systemd-analyze', 'verify', '--recursive-errors=no', '--man=no']
    const verified = await systemd.tryRun([...verify, `${ETC}/${unit}`])

    expect(verified).toEqual({ exitCode: 0, stdout: '', stderr: '' })
  })

  test('has a nightly backup, which the commands of the documentation start and the metrics of the server show', async () => {
    await systemd.run(['/bin/sh', '-euc', await blockAfter('commands of: plantstore-backup.timer')])
    const timer = await systemd.show(['ActiveState', 'UnitFileState', 'TimersCalendar'], 'plantstore-backup.timer')
    const backups = (await systemd.run(['ls', '/var/backups/plantstore'])).trim()
    const file = `/var/backups/plantstore/${backups}`
    await healthyPid()
    const metrics = await systemd.run(['curl', '--silent', '--fail', `http://${METRICS}/metrics`])

    expect(timer).toMatchObject({ ActiveState: 'active', UnitFileState: 'enabled' })
    expect(timer.TimersCalendar).toContain('OnCalendar=*-*-* 03:00:00')
    expect(backups).toMatch(/^plantstore-\S+\.db$/)
    expect(await systemd.run(['stat', '-c', '%U %a', '/var/backups/plantstore', file])).toBe(
      'plantstore 700\nplantstore 600\n',
    )
    const bytes = (await systemd.run(['stat', '-c', '%s', file])).trim()
    expect(metrics).toContain(`\nplantstore_last_backup_size_bytes ${bytes}\n`)
  })

  test('has a backup that reports its failure as the documentation shows', async () => {
    const report = await blockAfter(`file: ${REPORT}`)
    await systemd.write(`${ETC}/${REPORT}`, report.replace('https://hooks.example.org', 'http://127.0.0.1:3000'))
    await systemd.run(['mkdir', '-p', `${ETC}/${BACKUP}.service.d`])
    await systemd.write(`${ETC}/${BACKUP}.service.d/override.conf`, await blockAfter('file: backup-failed.conf'))
    await systemd.run(['systemctl', 'daemon-reload'])
    await healthyPid()
    await systemd.run(['mv', '/var/backups/plantstore', '/var/backups/away'])
    const { exitCode } = await systemd.tryRun(['systemctl', 'start', BACKUP])
    await systemd.run(['mv', '/var/backups/away', '/var/backups/plantstore'])

    expect(exitCode).toBe(1)
    // The server knows no such path, so curl exits with 22.
    const isSent = async () => (await systemd.show(['ExecMainStatus'], REPORT)).ExecMainStatus === '22'
    await until('the report is sent', isSent)
  })

  test('serves after the commands of the documentation, as a user without rights', async () => {
    const pid = await healthyPid()
    const state = await systemd.show(['FragmentPath', 'ActiveState', 'UnitFileState'])
    const curl = ['curl', '--silent', '--fail', '--header', `authorization: Bearer ${token}`]
    const json = ['--header', 'content-type: application/json', '--data', '{"id":1,"name":"Fern"}']
    const plants = 'http://127.0.0.1:3000/plants'
    const created = await systemd.run([...curl, ...json, plants])
    const listed = await systemd.run([...curl, plants])
    const deleted = await systemd.run([...curl, '--request', 'DELETE', '--write-out', '%{http_code}', `${plants}/1`])
    const status = await systemd.run(['cat', `/proc/${pid}/status`])

    expect(state).toEqual({ FragmentPath: `${ETC}/${UNIT}`, ActiveState: 'active', UnitFileState: 'enabled' })
    expect([created, listed, deleted]).toEqual(['{"name":"Fern"}', '[{"name":"Fern"}]', '204'])
    expect(status).not.toMatch(/^Uid:.*\b0\b/m)
    for (const line of [/^CapEff:\s0+$/m, /^CapBnd:\s0+$/m, /^NoNewPrivs:\s1$/m, /^Seccomp:\s2$/m])
      expect(status).toMatch(line)
  })

  test('lets the service write only to its state directory', async () => {
    const pid = await healthyPid()
    const as = ['nsenter', '--mount', '--user', `--target=${pid}`, '--', 'test', '-w']
    const isWritable = async (path: string) => (await systemd.tryRun([...as, path])).exitCode === 0

    for (const path of ['/', '/etc', '/usr', '/var', '/var/lib', '/home', '/proc/sys/kernel/hostname', '/opt']) {
      expect([path, await isWritable(path)]).toEqual([path, false])
    }
    expect(await isWritable('/var/lib/plantstore')).toBe(true)
    const modes = await systemd.run([
      'stat',
      '--format=%a %U',
      '/var/lib/plantstore',
      '/var/lib/plantstore/plantstore.db',
    ])
    expect(modes).toBe('700 plantstore\n600 plantstore\n')
  })

  test('lets the service go on at a reload, starts it again after a kill, and stops it in good order', async () => {
    const first = await healthyPid()
    await systemd.run(['systemctl', 'reload', UNIT])
    expect(await healthyPid()).toBe(first)
    await systemd.run(['kill', '-KILL', first])
    await until('systemd starts it again', async (see) => see(await systemd.show(['NRestarts'])).NRestarts !== '0')
    const second = await healthyPid()
    await systemd.run(['systemctl', 'stop', UNIT])
    const ended = await systemd.show(['Result', 'ExecMainStatus', 'ActiveState'])

    expect(second).not.toBe(first)
    expect(ended).toEqual({ Result: 'success', ExecMainStatus: '0', ActiveState: 'inactive' })
  })

  test('starts again until the machine has its address, and does not start again after exit code 2', async () => {
    const listen = '192.0.2.1:3000'
    /** Starts the service with one more variable, and tries again sooner, so that the test is short. */
    const startWith = async (variable: string) => {
      await systemd.write(`${SETTINGS}/again.conf`, `[Service]\nRestartSec=100ms\nEnvironment=${variable}\n`)
      await systemd.run(['systemctl', 'daemon-reload'])
      await systemd.tryRun(['systemctl', 'reset-failed', UNIT])
      await systemd.tryRun(['systemctl', 'restart', UNIT])
    }
    const limits = await systemd.show(['StartLimitIntervalUSec', 'StartLimitBurst'])
    await startWith(`PLANTSTORE_LISTEN=${listen}`)
    // By default systemd would have given up after five starts.
    const hasFailedOften = async () => Number((await systemd.show(['NRestarts'])).NRestarts) > 10
    await until('more than ten starts have failed', hasFailedOften)
    await systemd.run(['ip', 'address', 'add', '192.0.2.1/32', 'dev', 'lo'])
    await healthyPid(`--listen=${listen}`)
    await startWith('PLANTSTORE_MAX_BODY=none')
    const wrong = await systemd.show(['ActiveState', 'ExecMainStatus', 'NRestarts'])
    await systemd.run(['rm', `${SETTINGS}/again.conf`])
    await systemd.run(['systemctl', 'daemon-reload'])
    await systemd.run(['systemctl', 'restart', UNIT])

    expect(limits).toEqual({ StartLimitIntervalUSec: '3min', StartLimitBurst: '90' })
    expect(wrong).toEqual({ ActiveState: 'failed', ExecMainStatus: '2', NRestarts: '0' })
  })

  test('has a start that returns once the server is ready, or has ended', async () => {
    await systemd.run(['systemctl', 'restart', UNIT])
    const isReady = (await systemd.tryRun(['plantstore', 'healthcheck'])).exitCode === 0
    const wait = (await systemd.run(['sed', '-n', 's/^\\(ExecStartPost=.*\\)10s$/\\11h/p', `${ETC}/${UNIT}`])).trim()
    const ends = [
      'Environment=PLANTSTORE_DATABASE=/none/file',
      'Restart=no',
      'TimeoutStartSec=infinity',
      'ExecStartPost=',
    ]
    await systemd.write(`${SETTINGS}/ends.conf`, ['[Service]', ...ends, wait, ''].join('\n'))
    await systemd.run(['systemctl', 'daemon-reload'])
    const { exitCode } = await systemd.tryRun(['systemctl', 'restart', UNIT])
    const ended = await systemd.show(['ActiveState', 'ExecMainStatus'])
    await systemd.run(['rm', `${SETTINGS}/ends.conf`])

    expect(wait).toBe('ExecStartPost=-plantstore healthcheck --wait 1h')
    expect(isReady).toBe(true)
    expect(exitCode).toBe(1)
    expect(ended).toEqual({ ActiveState: 'failed', ExecMainStatus: '3' })
  })

  test('serves a proxy in the group of the service at a unix socket, with the settings of the documentation', async () => {
    await systemd.write(`${SETTINGS}/socket.conf`, await blockAfter('file: socket.conf'))
    await systemd.run(['/bin/sh', '-euc', `systemctl daemon-reload\n${await blockAfter('commands of: socket.conf')}`])
    const listen = '--listen=unix:/run/plantstore/plantstore.sock'
    await healthyPid(listen)
    const exitCodeAs = async (user: string) =>
      (await systemd.tryRun(['runuser', `--user=${user}`, '--', 'plantstore', 'healthcheck', listen])).exitCode

    expect([await exitCodeAs('www-data'), await exitCodeAs('nobody')]).toEqual([0, 1])
  })

  test.each([UNIT, `${BACKUP}.service`])('keeps its user from what the user could do without it: %s', async (unit) => {
    const commands = Object.values(ATTEMPTS)
    const asUser = ['runuser', '--user=plantstore', '--', '/bin/sh', '-c']
    const withoutUnit = await Promise.all(commands.map((command) => systemd.tryRun([...asUser, command])))
    const script = commands.map((command) => `(${command}) > /dev/null 2>&1; echo $?`).join('\n')
    await systemd.write('/opt/attempts', script)
    const exitCodes = (await runAsUnit(unit, '/bin/sh /opt/attempts')).trim().split('\n')

    expect(withoutUnit.map(({ exitCode }) => exitCode)).toEqual(commands.map(() => 0))
    expect(Object.keys(ATTEMPTS).filter((_, index) => exitCodes[index] === '0')).toEqual([])
    expect(exitCodes).toHaveLength(commands.length)
  })

  test.each([UNIT, `${BACKUP}.service`])('runs no other code by a variable of its settings: %s', async (unit) => {
    const variables = [
      'BUN_OPTIONS=--preload=/opt/other.js',
      'BUN_INSPECT=unix:/run/a',
      'BUN_INSPECT_CONNECT_TO=/run/b',
      'BUN_BE_BUN=1',
    ]
    await systemd.write('/opt/other.js', 'console.log("other code")')
    await systemd.run(['mkdir', '-p', '/etc/plantstore'])
    await systemd.write('/etc/plantstore/plantstore.env', `TZ=UTC\n${variables.join('\n')}\n`)
    const withoutUnit = await systemd.run(['env', `${variables[0]}`, 'plantstore', '--version'])
    const names = (await runAsUnit(unit, 'env')).matchAll(/^(TZ|BUN_\w+)=/gm)
    const printed = await runAsUnit(unit, 'plantstore --version')
    await systemd.run(['rm', '-r', '/etc/plantstore'])

    expect(withoutUnit).toContain('other code')
    expect(Array.from(names, ([, name]) => name)).toEqual(['TZ'])
    expect(printed).toBe(`${manifest.version}\n`)
  })

  test('is uninstalled by the commands of the documentation, which keep the database', async () => {
    await systemd.run(['/bin/sh', '-euc', await blockAfter(`commands of: the end of ${UNIT}`)])
    const unit = await systemd.show(['LoadState', 'ActiveState'], UNIT)

    expect(unit).toMatchObject({ LoadState: 'not-found', ActiveState: 'inactive' })
    expect(await systemd.run(['ls', '/var/lib/plantstore'])).toContain('plantstore.db\n')
    await systemd.run(['/bin/sh', '-euc', await blockAfter(`commands of: nothing of ${UNIT}`)])
    expect(await systemd.run(['find', '/etc', '/usr', '/var', '-xdev', '-iname', '*plantstore*'])).toBe('')
    expect(await systemd.tryRun(['getent', 'passwd', 'plantstore'])).toMatchObject({ exitCode: 2 })
  })
})

/** What any user of such a machine may do. Each command exits with 0 if it succeeds. */
const ATTEMPTS: Readonly<Record<string, string>> = {
  'make a namespace': 'unshare --user true',
  'open a socket of another family': "perl -MSocket -e 'socket(my $netlink, 16, SOCK_RAW, 0) or exit 1'",
  'make a set-user-ID file':
    'cd /var/lib/plantstore && touch attempt && chmod u+s attempt; code=$?; rm attempt; exit $code',
  'take another personality': 'setarch --addr-no-randomize true',
  'ask for another scheduling': 'chrt --idle 0 true',
  'see processes of others': 'test -e /proc/1/status',
  'see the machine': 'test -e /proc/meminfo',
  'see files of others in /tmp': 'test -e /tmp/contrib',
  'see homes': 'ls /home',
  'see devices': 'test -e /dev/kmsg',
}

/** Runs a command in place of that of a unit, with everything else unchanged. Returns its output. */
async function runAsUnit(unit: string, command: string): Promise<string> {
  await systemd.run(['systemctl', 'stop', unit])
  await systemd.run(['mkdir', '-p', `${ETC}/${unit}.d`])
  await systemd.write(
    `${ETC}/${unit}.d/command.conf`,
    `[Service]
Type=oneshot
Restart=no
ExecStart=
ExecStart=${command}
ExecStartPost=
StandardOutput=truncate:/run/output
StandardError=inherit
`,
  )
  await systemd.run(['systemctl', 'daemon-reload'])
  await systemd.run(['systemctl', 'start', unit])
  return systemd.run(['cat', '/run/output'])
}
