/**
 * The yardstick for lists: a bare `Bun.serve` that answers every request with the bytes and headers of the service. Usage:
 * `bun bare.ts FILE`, where FILE is a `CapturedAnswer` in JSON. Prints its port.
 */
import type { CapturedAnswer } from '../answers.ts'

const { body, headers }: CapturedAnswer = await Bun.file(process.argv[2] ?? '').json()
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: () => new Response(body, { headers }),
})
console.log(server.port)
