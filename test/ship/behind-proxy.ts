import { join } from 'node:path'
import { makeDatabase } from '../cli/support/database.ts'
import { makeCertificate } from '../support/certificates.ts'
import { blockAfter } from '../support/docs.ts'
import { serve } from '../support/executable.ts'
import { freePort } from '../support/postgres-system.ts'
import { startProgram } from '../support/program.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { runIn, runWell } from './run.ts'

/** The name in the certificates of all proxies. */
export const HOST = 'plants.example.org'
/** The address of the client. The proxy has another one. */
export const CLIENT = '127.0.0.2'

/** What Debian's own configuration has already, and `a2enmod` adds. */
const APACHE = [
  'mpm_event',
  'authz_core',
  'proxy',
  'proxy_http',
  'headers',
  'ssl',
  'alias',
  'http2',
  'filter',
  'deflate',
]
  .map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`)
  .join('\n')
  .concat('\nUser www-data\nGroup www-data\nProtocols h2 http/1.1')

/** What the example of a fleet has before it: the other example of HAProxy, with no more `timeout check` than Debian's defaults. */
const FRONTEND = (await blockAfter('file: haproxy.cfg')).replace(/^backend [\s\S]*|^ +timeout check .*\n/gm, '')

/**
 * The command of each proxy, and what is before and after its example, so that it uses no place outside of its folder. `down` is what
 * a client may be told while one of its servers restarts.
 */
export const PROXIES = [
  {
    name: 'nginx',
    file: 'nginx.conf',
    around: ['daemon off; pid FOLDER/pid; events {} http { access_log off;\n', '}'],
    command: 'nginx -e stderr -p FOLDER -c FOLDER/nginx.conf',
    servers: 2,
    drainWait: '1s',
    down: ['2 502'],
  },
  {
    name: 'caddy',
    file: 'Caddyfile',
    around: ['{\n\tadmin off\n\tauto_https disable_redirects\n}\n', ''],
    command: 'caddy run --config FOLDER/Caddyfile --adapter caddyfile',
    servers: 1,
    drainWait: '1s',
    // If an answer leaves a body unread, Caddy resets the stream behind it, and curl 7.88 may then lose the answer.
    down: ['2 502', '0 000'],
  },
  {
    name: 'haproxy',
    file: 'haproxy.cfg',
    around: ['', ''],
    command: 'haproxy -db -f FOLDER/haproxy.cfg',
    servers: 2,
    drainWait: '2s',
    down: [],
  },
  {
    name: 'haproxy',
    file: 'haproxy-fleet.cfg',
    around: [FRONTEND, ''],
    command: 'haproxy -db -f FOLDER/haproxy-fleet.cfg',
    servers: 3,
    drainWait: '1s',
    down: [],
  },
  {
    name: 'apache2',
    file: 'apache.conf',
    around: [`${APACHE}\nPidFile FOLDER/pid\nErrorLog /dev/stderr\nListen 127.0.0.1:PORT\n`, ''],
    command: 'apache2 -D FOREGROUND -f FOLDER/apache.conf',
    servers: 1,
    drainWait: '1s',
    // 500 is what Apache makes of a connection that is reset just when it was opened.
    down: ['2 500', '2 502', '2 503'],
  },
]

/** Puts the ports of servers into an example. One that names one server gets a line for each. */
const withPorts = (example: string, ports: readonly number[]): string =>
  example
    .replace(/^( +server (?:one )?)127\.0\.0\.1:3000(.*\n)/m, (_, before: string, after: string) =>
      ports.map((port, index) => `${before.replace('one', `one${index}`)}127.0.0.1:${port}${after}`).join(''),
    )
    .replace('127.0.0.1:3000', `127.0.0.1:${ports[0]}`)
    .replace(/10\.0\.0\.(\d):3000/g, (_, number) => `127.0.0.1:${ports[(number - 1) % ports.length]}`)

/**
 * Servers on one database, behind a proxy with the example of the documentation. Resolves when requests pass. `curl` asks for a path
 * through the proxy. `change` changes the example.
 */
export async function startBehind(
  { file, around: [before, after], command, ...proxy }: (typeof PROXIES)[number],
  change = (example: string) => example,
) {
  const made = makeDatabase()
  const { folder, database } = made
  const token = await createTokenIn(database)
  const options = ['--trusted-proxy', '127.0.0.1', '--drain-wait', proxy.drainWait]
  const start = (port: number) => serve(database, ['--listen', `127.0.0.1:${port}`, ...options])
  const servers = await Promise.all(Array.from({ length: proxy.servers }, () => start(freePort())))
  const port = freePort()
  const files = await makeCertificate(folder, 'proxy', { names: `DNS:${HOST}` })
  const both = await Promise.all([files.certPath, files.keyPath].map((path) => Bun.file(path).text()))
  await Bun.write(join(folder, 'both.pem'), both.join(''))
  // nginx comes with such a page.
  await Bun.write(join(folder, 'html/index.html'), '<title>Welcome</title>')
  const ports = servers.map((server) => server.port)
  const inPlace = (text: string) => text.replaceAll('FOLDER', folder).replaceAll('PORT', String(port))
  const text = [before, withPorts(change(await blockAfter(`file: ${file}`)), ports), after]
    .join('')
    .replace(/(?:\*?:)?\b443\b/, '127.0.0.1:PORT')
    .replace(/\/etc\/\S+fullchain.pem/, files.certPath)
    .replace(/\/etc\/\S+privkey.pem/, files.keyPath)
    .replace(/\/etc\/\S+both.pem/, 'FOLDER/both.pem')
    // Caddy would get a certificate for the name itself.
    .replace(`${HOST} {`, `https://${HOST}:PORT {\n\tbind 127.0.0.1\n\ttls ${files.certPath} ${files.keyPath}`)
  await Bun.write(join(folder, file), inPlace(text))
  const env = { PATH: process.env.PATH, HOME: folder }
  const { child, stderr, ended } = startProgram(inPlace(command).split(' '), { env, cwd: folder })
  const origin = `https://${HOST}:${port}`
  const flags = `--silent --interface ${CLIENT} --cacert ${files.certPath} --resolve ${HOST}:${port}:127.0.0.1`
  const toCurl = (path: string, args: readonly string[]) => ['curl', ...flags.split(' '), ...args, origin + path]
  const curl = (path: string, ...args: readonly string[]) => runWell(toCurl(path, args))
  await until('the proxy passes requests on', async (see) => {
    if (child.exitCode !== null) throw new Error(stderr())
    return see(await curl('/garden/readyz', '--retry', '0').catch(String)).includes('"ok"')
  })
  return {
    folder,
    token,
    port,
    ca: both[0] ?? '',
    servers,
    origin,
    curl,
    /** The same, if it may fail. */
    tryCurl: async (path: string, ...args: readonly string[]) => (await runIn(toCurl(path, args))).stdout,
    /** What the proxy has said. */
    stderr,
    /** What all servers have logged. */
    log: () => servers.map(({ stdout }) => stdout()).join(''),
    /** Ends a server, and starts it anew at the same port. */
    async restart(index: number): Promise<void> {
      const server = servers[index]
      if (server === undefined || (await server.end()) !== 0) throw new Error('the server did not end well')
      servers[index] = await start(server.port)
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
      await Promise.all(servers.map((server) => server.kill()))
      made[Symbol.dispose]()
    },
  }
}
