import type { startContainer } from './container.ts'
import { runWell } from './run.ts'

const PLANTSTORE = '/usr/local/bin/plantstore'

/** Makes a token in a container that serves, creates a plant with it, and returns what is answered to that and to a list. */
export async function plantRound(container: Awaited<ReturnType<typeof startContainer>>): Promise<readonly string[]> {
  const token = await container.exec([PLANTSTORE, 'token', 'create', '--user', 'me'])
  const curl = ['nsenter', '--net', `--target=${await container.pid()}`, 'curl', '--silent', '--fail']
  const authorization = ['--header', `authorization: Bearer ${token.stdout.trim()}`]
  const json = ['--header', 'content-type: application/json', '--data', '{"id":1,"name":"Fern"}']
  const url = 'http://127.0.0.1:3000/plants'
  return [await runWell([...curl, ...authorization, ...json, url]), await runWell([...curl, ...authorization, url])]
}

/** What it returns where all is well. */
export const PLANT_ROUND = ['{"name":"Fern"}', '[{"name":"Fern"}]']
