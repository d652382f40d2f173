import { captureAll, createProbe, listProbe, requireSameAnswer } from '../answers.ts'
import { type Server, startBare } from '../servers.ts'
import type { Bench } from './row.ts'

/** Starts a bare server that answers every request with one list of the service. */
export async function startBareList({ workspace }: Bench, plantstore: Server, token: string): Promise<Server> {
  const { list } = await captureAll(plantstore, token)
  const bare = await startBare(workspace, 'bare', list)
  await requireSameAnswer(bare, listProbe(token), list)
  return bare
}

/** Starts a bare server that parses a body and echoes it like a create of the service. */
export async function startBareEcho({ workspace }: Bench, plantstore: Server, token: string): Promise<Server> {
  const { created } = await captureAll(plantstore, token)
  const bare = await startBare(workspace, 'bare-echo', created)
  await requireSameAnswer(bare, createProbe(token), created)
  return bare
}
