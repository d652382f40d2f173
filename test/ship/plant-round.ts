import type { startContainer } from './container.ts'
import { PLANTSTORE } from './image-root.ts'
import { runWell } from './run.ts'

/** Makes a token in a container, and creates and lists a plant with it. Returns both answers. */
export async function plantRound(container: Awaited<ReturnType<typeof startContainer>>): Promise<readonly string[]> {
  const token = await container.exec([PLANTSTORE, 'token', 'create', '--user', 'me'])
  const curl = ['nsenter', '--net', `--target=${await container.pid()}`, 'curl', '--silent', '--fail']
  const authorization = ['--header', `authorization: Bearer ${token.stdout.trim()}`]
  const json = ['--header', 'content-type: application/json', '--data', '{"id":1,"name":"Fern"}']
  const url = 'http://127.0.0.1:3000/plants'
  return [await runWell([...curl, ...authorization, ...json, url]), await runWell([...curl, ...authorization, url])]
}

/** What `plantRound` returns if all is well. */
export const PLANT_ROUND = ['{"name":"Fern"}', '[{"name":"Fern"}]']
