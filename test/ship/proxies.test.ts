import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { makeDatabase } from '../cli/support/database.ts'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { blockAfter } from '../support/docs.ts'
import { serve } from '../support/executable.ts'
import { freePort } from '../support/postgres-system.ts'
import { startProgram } from '../support/program.ts'
import { lacks, program } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { runWell } from './run.ts'

const HOST = 'plants.example.org'
/** The address of the client. The proxy has another one. */
const CLIENT = '127.0.0.2'
const FORGED = '203.0.113.9'

/** What Debian's own configuration has already, and `a2enmod` adds. */
const APACHE = ['mpm_event', 'authz_core', 'proxy', 'proxy_http', 'headers', 'ssl', 'alias', 'http2']
  .map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`)
  .join('\n')
  .concat('\nUser www-data\nGroup www-data\nProtocols h2 http/1.1')

/** The command of each proxy, and what is before and after its example, so that it uses no place outside of its folder. */
const PROXIES = [
  {
    name: 'nginx',
    file: 'nginx.conf',
    around: ['daemon off; pid FOLDER/pid; events {} http { access_log off;\n', '}'],
    command: 'nginx -e stderr -p FOLDER -c FOLDER/nginx.conf',
  },
  {
    name: 'caddy',
    file: 'Caddyfile',
    around: ['{\n\tadmin off\n\tauto_https disable_redirects\n}\n', ''],
    command: 'caddy run --config FOLDER/Caddyfile --adapter caddyfile',
  },
  { name: 'haproxy', file: 'haproxy.cfg', around: ['', ''], command: 'haproxy -db -f FOLDER/haproxy.cfg' },
  {
    name: 'apache2',
    file: 'apache.conf',
    around: [`${APACHE}\nPidFile FOLDER/pid\nErrorLog /dev/stderr\nListen 127.0.0.1:PORT\n`, ''],
    command: 'apache2 -D FOREGROUND -f FOLDER/apache.conf',
  },
]

/** Longer than the buffers of proxies and the windows of HTTP/2. nginx itself refuses more than 2 MiB, as its example says. */
const REFUSED_BYTES = [100_000, 300_000, 1_500_000]
const VERSION_AND_STATUS = '%{http_version} %{http_code}\n'
const CLIENTS = 4
/** Requests of a client, one behind another. A proxy sends the later ones on connections that it shares. */
const REQUESTS = 5

/**
 * A server behind a proxy with the example of the documentation. `curl` asks for a path through the proxy. If it is shared, the example of
 * nginx has another server on the same database: nginx takes a server out that answers badly, unless it is the only one.
 */
async function startBehind({ file, around: [before, after], command }: (typeof PROXIES)[number], isShared = false) {
  const made = makeDatabase()
  const { folder, database } = made
  const token = await createTokenIn(database)
  const server = await serve(database, ['--trusted-proxy', '127.0.0.1'])
  const other = await serve(database)
  const port = freePort()
  const files = await makeCertificate(folder, 'proxy', { names: `DNS:${HOST}` })
  const both = await Promise.all([files.certPath, files.keyPath].map((path) => Bun.file(path).text()))
  await Bun.write(join(folder, 'both.pem'), both.join(''))
  const example = (await blockAfter(`file: ${file}`))
    .replace('server 127.0.0.1:3000;', isShared ? `$& server 127.0.0.1:${other.port};` : '$&')
    .replace('127.0.0.1:3000', `127.0.0.1:${server.port}`)
    .replace(/(?:\*?:)?\b443\b/, '127.0.0.1:PORT')
    .replace(/\/etc\/\S+fullchain.pem/, files.certPath)
    .replace(/\/etc\/\S+privkey.pem/, files.keyPath)
    .replace(/\/etc\/\S+both.pem/, 'FOLDER/both.pem')
    // Caddy would get a certificate for the name itself.
    .replace(`${HOST} {`, `https://${HOST}:PORT {\n\tbind 127.0.0.1\n\ttls ${files.certPath} ${files.keyPath}`)
  const inPlace = (text: string) => text.replaceAll('FOLDER', folder).replaceAll('PORT', String(port))
  await Bun.write(join(folder, file), inPlace(`${before}${example}${after}`))
  const env = { PATH: process.env.PATH, HOME: folder }
  const { child, stderr, ended } = startProgram(inPlace(command).split(' '), { env, cwd: folder })
  const origin = `https://${HOST}:${port}`
  const flags = `--silent --interface ${CLIENT} --cacert ${files.certPath} --resolve ${HOST}:${port}:127.0.0.1`
  const curl = (path: string, ...args: readonly string[]) =>
    runWell(['curl', ...flags.split(' '), ...args, origin + path])
  return {
    folder,
    token,
    server,
    origin,
    curl,
    stderr,
    isReady: async () => {
      if (child.exitCode !== null) throw new Error(stderr())
      return (await curl('/garden/readyz', '--retry', '0').catch(() => '')).includes('ok')
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
      await Promise.all([server.kill(), other.kill()])
      made[Symbol.dispose]()
    },
  }
}

describe.concurrent.each(PROXIES)('the example of $name', (proxy) => {
  test.skipIf(lacks(OPENSSL, program(proxy.name)))(
    'serves under /garden/, leads /garden there, and replaces what a client says of itself',
    async () => {
      await using behind = await startBehind(proxy)
      const { token, server, origin, curl } = behind
      await until('the proxy passes requests on', behind.isReady)
      const headers = [`Authorization: Bearer ${token}`, `X-Forwarded-For: ${FORGED}`, `Forwarded: for=${FORGED}`]
      const forged = [...headers, 'X-Request-Id: forged'].flatMap((line) => ['--header', line])
      const create = ['--header', 'Content-Type: application/json', '--data', '{"id":1,"name":"Fern"}']

      expect(await curl('/garden', '--output', '/dev/null', '--write-out', '%{http_code} %{redirect_url}')).toBe(
        `301 ${origin}/garden/`,
      )
      expect(await curl('/garden/', '--header', 'Accept: text/html')).toStartWith('<!doctype html>')
      expect(await curl('/garden/plants', ...forged, ...create)).toBe('{"name":"Fern"}')
      expect(await curl('/garden/plants', ...forged)).toBe('[{"name":"Fern"}]')
      await until('the list is logged', () => server.stdout().includes('"listPlants"'))
      const log = server.stdout().split('\n')
      const line = log.find((each) => each.includes('"createPlant"'))
      expect(line).toContain(`"remoteAddress":"${CLIENT}"`)
      expect(server.stdout()).not.toMatch(/forged|203\.0\.113\.9/)
    },
  )

  test.skipIf(lacks(OPENSSL, program(proxy.name)))(
    'answers all clients of HTTP/2 while and after the server refuses large bodies of others',
    async () => {
      await using behind = await startBehind(proxy, true)
      const { folder, token, curl } = behind
      await until('the proxy passes requests on', behind.isReady)
      const flags = ['--http2', '--max-time', '30', '--output', '/dev/null', '--write-out', VERSION_AND_STATUS]
      const refuse = async (bytes: number) => {
        const path = join(folder, 'body')
        await Bun.write(path, 'x'.repeat(bytes))
        const body = ['--data-binary', `@${path}`, '--header', 'Content-Type: application/json']
        return () => curl('/garden/plants', ...flags, ...body)
      }
      const list = () =>
        curl(`/garden/plants?client=[1-${REQUESTS}]`, ...flags, '--header', `Authorization: Bearer ${token}`)
      const several = (ask: () => Promise<string>) => Array.from({ length: CLIENTS }, ask)

      for (const bytes of REFUSED_BYTES) {
        const refused = await refuse(bytes)
        const answers = await Promise.all([...several(refused), ...several(refused), ...several(list)])
        answers.push(...(await Promise.all(several(list))))
        expect(new Set(answers)).toEqual(new Set(['2 401\n', '2 200\n'.repeat(REQUESTS)]))
      }
      expect(behind.stderr()).not.toMatch(/(?:from|live) upstream/)
    },
    60_000,
  )
})
