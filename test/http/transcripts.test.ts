import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readTranscripts, runTranscript } from './support/transcript.ts'

const FOLDER = join(import.meta.dir, 'transcripts')

describe.each(readdirSync(FOLDER).sort())('%s', (file) => {
  for (const transcript of readTranscripts(readFileSync(join(FOLDER, file), 'utf8'))) {
    test(transcript.title, async () => {
      const { expected, actual } = await runTranscript(transcript)

      expect(actual).toBe(expected)
    })
  }
})

describe('a transcript', () => {
  const isAsAnswered = async (text: string) => {
    const [transcript] = readTranscripts(`# Title\n${text}`)
    if (transcript === undefined) throw new Error('there is no transcript')
    const { expected, actual } = await runTranscript(transcript)
    return [expected === actual, expected.match(/> /g)?.length]
  }

  test.each([
    ['me> GET /plants\nyou> GET /plants\n  Accept: a\n200 []\n  Content-Type: application/json\n  Link:\n', 2],
    ['me> GET /plants?limit=1\n200 []\n  ETag: {etag1}\n\nme> GET /plants?limit=1\n  If-None-Match: {etag1}\n304\n', 2],
    ['$ serve {"quotaPlants":0}\nme> POST /plants {"id":1,"name":"{3*a}{x62}"}\n403 {"error":40302,{text}\n', 1],
  ])('passes if all is answered as it says: %j', async (text, requests) => {
    expect(await isAsAnswered(text)).toEqual([true, requests])
  })

  test.each([
    ['another status', 'me> GET /plants\n404 []\n'],
    ['another body', 'me> GET /plants\n200 [1]\n'],
    ['another header', 'me> GET /plants\n200 []\n  Content-Type: text/plain\n'],
    ['a header too many', 'me> GET /plants\n200 []\n  Content-Type:\n'],
    ['an answer to one of several requests', 'me> GET /plants\nnobody> GET /plants\n200 []\n'],
    [
      'another text for a variable',
      'me> POST /plants {"id":1,"name":"a"}\n200 {text}\nme> GET /plants/1\n200 {text}\n  ETag: {etag1}\nme> GET /plants?limit=1\n200 {text}\n  ETag: {etag1}\n',
    ],
  ])('fails if a request has %s', async (_, text) => {
    expect((await isAsAnswered(text))[0]).toBe(false)
  })
})
