import type { Server } from './servers.ts'

/** Larger than any id under load, and exact as a double. */
const PROBED_ID = 8_000_000_000_000_000
const UNKNOWN_TOKEN = 'plst_00000000000000000000000000000000000000000000000000000'
/** Part of the answers that a probe must get: two plants, a conflict, and a refusal of the unknown token. */
const EXPECTED = /^200 \[\{.+\n200 \{.+\n409 \n401 $/

/**
 * Rejects unless all servers answer a list and a create with the same statuses and bodies, and refuse a second create and an
 * unknown token. The created plant has an id that no load creates.
 */
export async function requireSameAnswers(
  entrants: readonly { readonly server: Server; readonly token: string }[],
): Promise<void> {
  const plant = { id: PROBED_ID, name: `Monstera deliciosa ${PROBED_ID}`, tag: 'evergreen' }
  const seen = await Promise.all(
    entrants.map(async ({ server, token }) => {
      const answers = [
        await ask(server, token),
        await ask(server, token, plant),
        await ask(server, token, plant),
        await ask(server, UNKNOWN_TOKEN),
      ]
      return { name: server.name, text: answers.join('\n') }
    }),
  )
  const [first] = seen
  if (first === undefined || !EXPECTED.test(first.text)) throw new Error(`odd answers: ${first?.text}`)
  for (const { name, text } of seen) {
    if (text !== first.text) throw new Error(`${name} answers\n${text}\nand ${first.name}\n${first.text}`)
  }
}

/** Lists, or creates a plant. Returns the status and the body, which is left out of a refusal: its words are free. */
async function ask({ url }: Server, token: string, plant?: object): Promise<string> {
  const authorization = `Bearer ${token}`
  const response = await (plant === undefined
    ? fetch(`${url}/plants?limit=20`, { headers: { authorization } })
    : fetch(`${url}/plants`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: JSON.stringify(plant),
      }))
  const body = await response.text()
  return `${response.status} ${response.ok ? body : ''}`
}
