/**
 * `bun run promises [NAME]`: sends the requests of test/http/transcripts to the contestant elysia, and prints how many are answered
 * as the transcripts say, and the others. It leaves out transcripts that need an option of the service. NAME is one file of them.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { transcriptsOf } from '../http/support/transcripts.ts'
import type { Transport } from '../http/support/transports.ts'
import { startProgram } from '../support/program.ts'
import { readTranscripts, rowsOf } from '../support/transcript.ts'
import { until } from '../support/until.ts'

const APP = join(import.meta.dir, 'contestants/elysia.ts')
const FOLDER = join(import.meta.dir, '../http/transcripts')

const elysia: Transport = {
  name: 'elysia',
  async start(_store, database) {
    const { child, stdout, ended } = startProgram([process.execPath, APP, database])
    const port = await until('the app listens', () => /^\d+(?=\n)/.exec(stdout())?.[0])
    return {
      fetch: (path, init) => fetch(`http://127.0.0.1:${port}${path}`, init),
      port: Number(port),
      logs: stdout,
      async stop() {
        child.kill()
        await ended
      },
    }
  },
}

const statusOf = (answer: string) => answer.slice(0, 'NNN'.length)
const withoutMessage = (answer: string) => answer.replace(/"message":"(?:[^"\\]|\\.)*"/, '"message":""')
/** Rows that are answered as a whole, those whose error may have another sentence, and those with the right status. */
const kept = { whole: 0, exceptMessage: 0, status: 0 }
let rows = 0

const { asked: request, open } = transcriptsOf(elysia)
for (const file of process.argv[2] === undefined ? readdirSync(FOLDER).toSorted() : [process.argv[2]]) {
  for (const transcript of readTranscripts(readFileSync(join(FOLDER, file), 'utf8'), request)) {
    if (transcript.opening.includes('$ serve')) continue
    for await (const { asked, expected, came } of rowsOf(transcript, { open })) {
      rows++
      if (came === expected) kept.whole++
      else console.log(`${file}: ${transcript.title}\n${asked}- ${expected}+ ${came}`)
      if (withoutMessage(came) === withoutMessage(expected)) kept.exceptMessage++
      if (statusOf(came) === statusOf(expected)) kept.status++
    }
  }
}
console.log(`${kept.whole} of ${rows} rows`)
console.log(`${kept.exceptMessage} of ${rows} whatever \`message\` says, ${kept.status} of ${rows} by the status alone`)
