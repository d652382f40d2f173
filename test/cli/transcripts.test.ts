import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { lacks } from '../support/requirement.ts'
import { readTranscripts, requirementsOf, runTranscript } from './support/transcript.ts'

const FOLDER = join(import.meta.dir, 'transcripts')
const files = readdirSync(FOLDER).sort()
/** Long, because a test waits for its lane first. */
const TIMEOUT_MS = 600_000
/** More at once would make a server slower than the 2 s for which `plantstore healthcheck` waits. */
const lanes = [Promise.resolve(), Promise.resolve(), Promise.resolve(), Promise.resolve()]

/** Runs a test as soon as its lane is free. */
function whenFree(run: () => Promise<void>): Promise<void> {
  const done = (lanes.shift() ?? Promise.resolve()).then(run)
  lanes.push(done.catch(() => {}))
  return done
}

describe.concurrent.each(files)('%s', (file) => {
  for (const transcript of readTranscripts(readFileSync(join(FOLDER, file), 'utf8'))) {
    const play = async () => {
      const { expected, actual } = await runTranscript(transcript)

      expect(actual).toBe(expected)
    }
    test.skipIf(lacks(...requirementsOf(transcript)))(transcript.title, () => whenFree(play), TIMEOUT_MS)
  }
})

describe('a transcript', () => {
  const isAsPrinted = async (text: string) => {
    const [transcript = { title: '', steps: [] }] = readTranscripts(`# Title\n${text}`)
    const { expected, actual } = await runTranscript(transcript)
    return expected === actual
  }

  test.each([
    '$ echo a; cat <<end >&2; exit 3\n> b\n>\n> end\n! b\n! \na\n[3]\n\n',
    '$ echo 12; echo 34; echo 12\n{number1}\n{number2}\n{number1}\n$ echo {number2}{number1}\n3412\n$ pwd\n{folder}\n',
    '$ plantstore user list\n! plantstore: There is no database {folder}/plantstore.db: name the one that the server uses.\n[3]\n',
  ])('passes if all is printed as it says: %j', async (text) => {
    expect(await isAsPrinted(text)).toBe(true)
  })

  test.each([
    ['another text', '$ echo a\nb\n'],
    ['nothing', '$ true\na\n'],
    ['more', '$ echo a; echo b\na\n'],
    ['on stderr', '$ echo a >&2\na\n'],
    ['with another exit code', '$ false\n'],
    ['another text for a variable', '$ echo 12; echo 34\n{number1}\n{number1}\n'],
    ['another text for a variable of an earlier step', '$ echo 12\n{number1}\n$ echo 34\n{number1}\n'],
    ['a text of another kind', '$ echo a\n{number}\n'],
  ])('fails if a step prints %s', async (_, text) => {
    expect(await isAsPrinted(text)).toBe(false)
  })
})
