import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { TlsFiles } from '../../src/http/tls.ts'
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
const APACHE = ['mpm_event', 'authz_core', 'proxy', 'proxy_http', 'headers', 'ssl', 'alias']
  .map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`)
  .join('\n')
  .concat('\nUser www-data\nGroup www-data')

/** The changes of each example for a test: a port of its own, a certificate, and no place outside of its folder. */
const PROXIES = [
  {
    name: 'nginx',
    file: 'nginx.conf',
    change: (text: string, port: number, { certPath, keyPath }: TlsFiles, folder: string) =>
      `daemon off; pid ${folder}/pid; events {} http { access_log off;\n${text}}`
        .replace('443', `127.0.0.1:${port}`)
        .replace(/\/etc\/\S+fullchain.pem/, certPath)
        .replace(/\/etc\/\S+privkey.pem/, keyPath),
    command: (file: string, folder: string) => ['nginx', '-e', 'stderr', '-p', folder, '-c', file],
  },
  {
    name: 'caddy',
    file: 'Caddyfile',
    change: (text: string, port: number, { certPath, keyPath }: TlsFiles) =>
      `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${text}`.replace(
        `${HOST} {`,
        `https://${HOST}:${port} {\n\tbind 127.0.0.1\n\ttls ${certPath} ${keyPath}`,
      ),
    command: (file: string) => ['caddy', 'run', '--config', file, '--adapter', 'caddyfile'],
  },
  {
    name: 'haproxy',
    file: 'haproxy.cfg',
    change: (text: string, port: number, _: TlsFiles, folder: string) =>
      text.replace('bind :443', `bind 127.0.0.1:${port}`).replace(/\/etc\/\S+both.pem/, `${folder}/both.pem`),
    command: (file: string) => ['haproxy', '-db', '-f', file],
  },
  {
    name: 'apache2',
    file: 'apache.conf',
    change: (text: string, port: number, { certPath, keyPath }: TlsFiles, folder: string) =>
      `${APACHE}\nPidFile ${folder}/pid\nErrorLog /dev/stderr\nListen 127.0.0.1:${port}\n${text}`
        .replace('*:443', `127.0.0.1:${port}`)
        .replace(/\/etc\/\S+fullchain.pem/, certPath)
        .replace(/\/etc\/\S+privkey.pem/, keyPath),
    command: (file: string) => ['apache2', '-D', 'FOREGROUND', '-f', file],
  },
]

/** A server behind a proxy with the example of the documentation. `curl` asks for a path through the proxy. */
async function startBehind({ file, change, command }: (typeof PROXIES)[number]) {
  const made = makeDatabase()
  const { folder, database } = made
  const token = await createTokenIn(database)
  const server = await serve(database, ['--trusted-proxy', '127.0.0.1'])
  const port = freePort()
  const files = await makeCertificate(folder, 'proxy', { names: `DNS:${HOST}` })
  const both = await Promise.all([files.certPath, files.keyPath].map((path) => Bun.file(path).text()))
  await Bun.write(join(folder, 'both.pem'), both.join(''))
  const config = join(folder, file)
  const example = (await blockAfter(`file: ${file}`)).replace('127.0.0.1:3000', `127.0.0.1:${server.port}`)
  await Bun.write(config, change(example, port, files, folder))
  const env = { PATH: process.env.PATH, HOME: folder }
  const { child, stderr, ended } = startProgram(command(config, folder), { env, cwd: folder })
  const origin = `https://${HOST}:${port}`
  const flags = `--silent --interface ${CLIENT} --cacert ${files.certPath} --resolve ${HOST}:${port}:127.0.0.1`
  const curl = (path: string, ...args: readonly string[]) =>
    runWell(['curl', ...flags.split(' '), ...args, origin + path])
  return {
    token,
    server,
    origin,
    curl,
    isReady: async () => {
      if (child.exitCode !== null) throw new Error(stderr())
      return (await curl('/garden/readyz', '--retry', '0').catch(() => '')).includes('ok')
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
      await server.kill()
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
})
