/**
 * The yardstick for writes: a bare `Bun.serve` that parses the body and echoes it with the headers of the service. Usage:
 * `bun bare-echo.ts FILE`, where FILE is a `CapturedAnswer` in JSON. Prints its port.
 */
import type { CapturedAnswer } from '../answers.ts'

const { headers }: CapturedAnswer = await Bun.file(process.argv[2] ?? '').json()
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    // The load sends only plants.
    const { name, tag } = (await request.json()) as { readonly name: string; readonly tag: string }
    return new Response(JSON.stringify({ name, tag }), { headers })
  },
})
console.log(server.port)
