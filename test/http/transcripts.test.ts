import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { orUndefined } from '../../src/error.ts'
import { parseJson } from '../../src/formats/plant-json.ts'
import { lineOfDifference, testTranscripts } from '../support/transcript.ts'
import { transcriptsOf } from './support/transcripts.ts'
import { SOCKET_TRANSPORTS } from './support/transports.ts'

const [TRANSPORT] = SOCKET_TRANSPORTS
if (TRANSPORT === undefined) throw new Error('unreachable')
const SERVICE = transcriptsOf(TRANSPORT)

/** A create as a put of the same plant. Without an id that can be read, it is a put of plant 1. */
function asPut(request: string): string {
  const body = /^\w+> POST \/plants (.*)$/m.exec(request)?.[1] ?? ''
  const parsed = orUndefined(() => (parseJson(Buffer.from(body)) as { readonly id?: unknown } | null)?.id)
  const id = typeof parsed === 'bigint' ? parsed : (/"id":([1-9]\d*)/.exec(body)?.[1] ?? 1)
  return request.replace('> POST /plants', `> PUT /plants/${id}`)
}

const FOLDER = join(import.meta.dir, 'transcripts')
testTranscripts(FOLDER, SERVICE)
describe('as a put', () => testTranscripts(FOLDER, { ...transcriptsOf(TRANSPORT, asPut), files: ['bodies.txt'] }))

// test/cli/commands.test.ts has what all transcripts share.
describe('a transcript of requests', () => {
  test.each([
    'me> GET /plants\nyou> GET /plants\n  Accept: a\n200 []\n  Content-Type: application/json\n  Link:\n',
    'me> GET /plants?limit=1\n200 []\n  ETag: {etag1}\n\nme> GET /plants?limit=1\n  If-None-Match: {etag1}\n304\n',
    '$ serve {"quotaPlants":0}\nme> POST /plants {"id":1,"name":"{3*a}{x62}"}\n403 {"error":40302,{text}\n',
  ])('passes if all is answered as it says: %j', async (text) => {
    expect(await lineOfDifference(text, SERVICE)).toBeUndefined()
  })

  test.each([
    ['another status', 'me> GET /plants\n404 []\n', 2],
    ['another body', 'me> GET /plants\n200 [1]\n', 2],
    ['another header', 'me> GET /plants\n200 []\n  Content-Type: text/plain\n', 2],
    ['a header too many', 'me> GET /plants\n200 []\n  Content-Type:\n', 2],
    ['an answer to one of several requests', 'me> GET /plants\nnobody> GET /plants\n200 []\n', 3],
  ])('fails with the line of a request that has %s', async (_, text, line) => {
    expect(await lineOfDifference(text, SERVICE)).toBe(line)
  })
})
