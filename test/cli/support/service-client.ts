import type { serve } from '../../support/executable.ts'

/** A server that was started. */
export type Server = Awaited<ReturnType<typeof serve>>

/** Creates a plant with this id, and a name that has it. Resolves to the status. */
export const createPlant = async (server: Server, token: string, id: number) =>
  (await server.request('POST', '/plants', { token, body: { id, name: `Fern ${id}` } })).status
/** The names of the plants that a token sees. */
export const listNames = async (server: Server, token: string) =>
  ((await (await server.request('GET', '/plants?limit=100', { token })).json()) as { name: string }[]).map(
    ({ name }) => name,
  )
/** An answer to compare with a status. Its body tells why the status is another one. */
export async function answerOf(sent: Promise<Response>) {
  const answer = await sent
  return { status: answer.status, body: await answer.text() }
}
/** The status of an answer, or the code of its error. */
export async function codeOfAnswer(answer: Promise<Response>): Promise<number> {
  const response = await answer
  const text = await response.text()
  return response.ok ? response.status : JSON.parse(text).error
}
/** 200, or the code of the refusal that a token gets. */
export const codeOf = (server: Server, token: string): Promise<number> =>
  codeOfAnswer(server.request('GET', '/plants?limit=1', { token }))
/** The same for several tokens, one after the other. */
export async function codesOf(server: Server, tokens: readonly string[]): Promise<number[]> {
  const codes: number[] = []
  for (const token of tokens) codes.push(await codeOf(server, token))
  return codes
}
