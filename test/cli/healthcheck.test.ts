import { expect, test } from 'bun:test'
import { runPlantstore } from '../support/executable.ts'
import { SLACK_MS } from '../support/slack.ts'

/** The promise, without the start of the process. */
const HEALTHCHECK_LIMIT_MS = 2000

const healthcheck = (port: number) => runPlantstore(['healthcheck', '--json', '--listen', `127.0.0.1:${port}`])

// Real servers are in the transcripts.
test('healthcheck asks /readyz once, follows no redirect, and prints with --json the status, with exit code 1', async () => {
  const asked: string[] = []
  const answers = [new Response(null, { status: 503 }), Response.redirect('/healthz')]
  using standIn = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ method, url }) {
      asked.push(`${method} ${new URL(url).pathname}`)
      return answers.shift() ?? new Response()
    },
  })
  const found = [await healthcheck(standIn.port ?? 0), await healthcheck(standIn.port ?? 0)]

  expect(found.map(({ stdout, exitCode }) => ({ ...JSON.parse(stdout), exitCode }))).toEqual([
    { isReady: false, status: 503, exitCode: 1 },
    { isReady: false, status: 302, exitCode: 1 },
  ])
  for (const { stderr } of found) expect(stderr).toMatch(/^plantstore: [^\n]+\n$/)
  expect(asked).toEqual(['GET /readyz', 'GET /readyz'])
})

test.concurrent.each([
  '',
  'HTTP/1.1 200 OK\r\nContent-',
  'HTTP/1.1 503 Unavailable\r\nContent-Length: 100\r\n\r\n{"err',
])('healthcheck exits with 1 within 2 s if a server answers only %j', async (part) => {
  using hanging = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { open: (socket) => void socket.write(part), data() {} },
  })
  const startMs = performance.now()
  const { exitCode } = await healthcheck(hanging.port)

  expect(exitCode).toBe(1)
  expect(performance.now() - startMs).toBeLessThan(HEALTHCHECK_LIMIT_MS + SLACK_MS)
})
