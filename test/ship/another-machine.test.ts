import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { makeCertificate } from '../support/certificates.ts'
import { blockAfter } from '../support/docs.ts'
import { COMPILED } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { bootSystemd, installByHand, SYSTEMD } from './systemd.ts'

const DROP_IN = '/etc/systemd/system/plantstore.service.d'
const SETTINGS = '/etc/plantstore/plantstore.env'
const KEY = '/etc/plantstore/privkey.pem'
const SETTINGS_TEXT = `PLANTSTORE_LISTEN=127.0.0.1:3210
PLANTSTORE_TLS_CERT=/etc/plantstore/fullchain.pem
PLANTSTORE_TLS_KEY=${KEY}
`
const FIRST = 'http://127.0.0.1:3000'
const MOVED = 'https://127.0.0.1:3210'

test.skipIf(lacks(SYSTEMD, COMPILED))(
  'a service moves to another machine with its plants, tokens, settings and files by the commands of the documentation',
  async () => {
    await using old = await bootSystemd()
    const token = await installByHand(old)
    const create = ['--header', 'content-type: application/json', '--data', '{"id":1,"name":"Fern"}']
    const ask = (origin: string, ...args: readonly string[]) =>
      ['curl', '--silent', '--fail', '--insecure', '--header', `authorization: Bearer ${token}`, ...args].concat(
        `${origin}/plants`,
      )
    await until('the old machine serves', async (see) => see(await old.tryRun(ask(FIRST, ...create))).exitCode === 0)
    await old.run(['mkdir', '-p', '/etc/plantstore', DROP_IN])
    await old.write(SETTINGS, SETTINGS_TEXT)
    using folder = makeFolder()
    const { certPath, keyPath } = await makeCertificate(folder.path, 'plants')
    await old.write('/etc/plantstore/fullchain.pem', readFileSync(certPath, 'utf8'))
    await old.write(KEY, readFileSync(keyPath, 'utf8'))
    await old.run(['chown', 'plantstore', KEY])
    await old.write(`${DROP_IN}/override.conf`, '[Service]\nMemoryMax=512M\n')

    const follow = async (machine: typeof old, comment: string) =>
      machine.run(['/bin/bash', '-euc', `cd /root\n${await blockAfter(`commands of: ${comment}`)}`])
    const named = await follow(old, 'settings of a machine')
    await follow(old, 'the old machine')
    await using other = await bootSystemd()
    // Another user has the number that `plantstore` has on the old machine.
    await other.run(['useradd', '--system', 'other'])
    const unknown = await installByHand(other)
    for (const file of ['moved.db', 'settings.tar.gz']) {
      const text = await old.run(['base64', '--wrap=0', `/root/${file}`])
      await other.write(`/root/${file}.text`, text)
      await other.run(['/bin/sh', '-euc', `base64 --decode /root/${file}.text > /root/${file}`])
    }
    const listed = await follow(other, 'the new machine')
    await until('the new machine serves', async (see) => see(await other.tryRun(ask(MOVED))).exitCode === 0)

    expect(named).toBe(SETTINGS_TEXT.replace(/^.*\n/, ''))
    expect(listed).toContain(' me ')
    expect(await other.run(ask(MOVED))).toBe('[{"name":"Fern"}]')
    expect((await other.tryRun(ask(MOVED).map((each) => each.replace(token, unknown)))).exitCode).not.toBe(0)
    expect(await other.run(['stat', '-c', '%U', KEY])).toBe('plantstore\n')
    expect((await other.show(['MemoryMax'])).MemoryMax).toBe(`${512 * 1024 * 1024}`)
    expect((await other.show(['ActiveState'], 'plantstore-backup.timer')).ActiveState).toBe('active')
    expect((await old.show(['ActiveState'])).ActiveState).toBe('inactive')
  },
)
