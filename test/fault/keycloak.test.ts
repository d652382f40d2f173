import { expect } from 'bun:test'
import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { serveDatabase } from '../cli/support/database.ts'
import { codeOf, createPlant, listNames } from '../cli/support/service-client.ts'
import { CHROMIUM, sharedBrowser } from '../http/support/browser.ts'
import { uiOf } from '../http/support/page.ts'
import { blockAfter } from '../support/docs.ts'
import { makeFolder } from '../support/folder.ts'
import { AUDIENCE } from '../support/issuer.ts'
import { freePort } from '../support/postgres-system.ts'
import { runProgram, startProgram } from '../support/program.ts'
import { lacks, program } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { testLong } from './rounds.ts'

/** The last version that runs on the Java of Debian 12. */
const VERSION = '26.0.8'
const ARCHIVE = `keycloak-quarkus-dist-${VERSION}.zip`
const SHA256 = 'd82a52098db41f036bcfe8f2ebfd9251781c8af5959af8714e8aa9b311081786'
const FOLDER = resolve(import.meta.dir, '../../dist/keycloak')

/** Downloads the archive once, and checks it. */
async function fetchArchive(): Promise<string> {
  const archive = join(FOLDER, ARCHIVE)
  mkdirSync(FOLDER, { recursive: true })
  if (!existsSync(archive)) {
    const copy = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy'
    const artifact = `-Dartifact=org.keycloak:keycloak-quarkus-dist:${VERSION}:zip`
    const { exitCode, stdout } = await runProgram(['mvn', '-q', '-B', copy, artifact, `-DoutputDirectory=${FOLDER}`])
    if (exitCode !== 0) throw new Error(`mvn: ${stdout}`)
  }
  expect(new Bun.CryptoHasher('sha256').update(await Bun.file(archive).bytes()).digest('hex')).toBe(SHA256)
  return archive
}

const isMissing = lacks(...['java', 'mvn', 'unzip', 'curl'].map(program), CHROMIUM)

/** Makes a user who has to complete nothing at the first login. */
const MAKE_USER = `bin/kcadm.sh create users -r plants -s username=ada -s enabled=true -s email=ada@example.org \\
  -s firstName=Ada -s lastName=Lovelace
bin/kcadm.sh set-password -r plants --username ada --new-password any
echo the user is there`

/** Signs in at the page with Keycloak, and out again. Then it asks for the password once more. */
async function signInAndOut(pageUrl: string, host: string): Promise<void> {
  const { page } = await (await sharedBrowser()).open()
  const ui = uiOf(page)
  await page.goto(`${pageUrl}#/?filter=Fe`)
  await ui.click(`Sign in with ${host}`)
  await page.fill('#username', 'ada')
  await page.fill('#password', 'any')
  await page.click('#kc-login')
  await page.locator('header .user').getByText('Ada Lovelace').waitFor()
  expect(page.url()).toBe(`${pageUrl}#/?filter=Fe`)
  await ui.newPlant()
  await ui.send({ Name: 'Fern' })
  await ui.told('Added “Fern”.')
  // As at the end of a token.
  await page.evaluate('sessionStorage.clear()')
  await page.reload()
  await ui.click(`Sign in with ${host}`)
  await ui.row(1).waitFor()
  await ui.click('Sign out')
  await page.click('#kc-logout')
  await ui.click(`Sign in with ${host}`)
  await page.locator('#password').waitFor()
}

testLong.skipIf(isMissing)(
  'a server accepts the tokens of Keycloak, set up as docs/how-to/accept-provider-tokens.md says',
  async () => {
    const archive = await fetchArchive()
    using folder = makeFolder()
    expect(await runProgram(['unzip', '-q', archive, '-d', folder.path])).toMatchObject({ exitCode: 0 })
    const port = freePort()
    const pageUrl = `http://127.0.0.1:${freePort()}/`
    const commands = (await blockAfter('commands of: keycloak'))
      .replaceAll('8081', String(port))
      .replace('https://plants.example.org/"', `${pageUrl}"`)
    // The block prints the answer with the token last. Keycloak ends with the shell.
    const shell = startProgram(['setsid', 'bash', '-euc', `trap 'kill $!' EXIT; ${commands}\n${MAKE_USER}\nwait`], {
      cwd: join(folder.path, `keycloak-${VERSION}`),
      env: { PATH: process.env.PATH, HOME: folder.path, JAVA_OPTS_KC_HEAP: '-Xmx512m' },
    })
    try {
      const [, token = ''] = await until(
        'Keycloak has signed a token',
        (see) => /"access_token":"([^"]+)".*the user is there/s.exec(see(shell.stdout())) ?? undefined,
        { limitMs: 1_200_000, lookMs: 200 },
      )
      const issuer = `http://127.0.0.1:${port}/realms/plants`
      const flags = ['--jwt-issuer', issuer, '--jwt-audience', AUDIENCE, '--jwt-client-id', 'page']
      await using service = await serveDatabase([...flags, '--listen', new URL(pageUrl).host])

      expect(await createPlant(service.server, token, 1)).toBe(200)
      expect(await listNames(service.server, token)).toEqual(['Fern 1'])
      expect(await codeOf(service.server, `${token.slice(0, -9)}AAAAAAAAA`)).toBe(40102)
      await signInAndOut(pageUrl, `127.0.0.1:${port}`)
    } finally {
      process.kill(-shell.child.pid, 'SIGTERM')
      await shell.ended
    }
  },
)
