import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { LINE_EVERY_MS, showProgress } from '../../src/cli/long-task.ts'
import { runOnTerminal } from '../support/terminal.ts'
import { fillDatabase } from './support/database.ts'

/** So many that a backup is still under way when its first batch is copied. */
const MANY_PLANTS = 150_000

/** A clock that the test turns, and what is told meanwhile. */
function makeIo(terminal?: NodeJS.WritableStream) {
  const told: string[] = []
  let nowMs = 0
  return {
    io: {
      terminal: () => terminal,
      monotonicMs: () => nowMs,
      tell: async (lines: string | readonly string[]) => {
        told.push(...[lines].flat())
      },
    },
    told,
    pass: (ms: number) => {
      nowMs += ms
    },
  }
}

/** A terminal of 80 columns, with all that is written to it. */
function makeTerminal() {
  let text = ''
  const stream = Object.assign(
    new Writable({
      write(chunk, _encoding, done) {
        text += chunk
        done()
      },
    }),
    { isTTY: true, columns: 80 },
  )
  return { stream, text: () => text }
}

describe('progress', () => {
  test('is a line now and then without a terminal, with the share if the total is known', () => {
    const { io, told, pass } = makeIo()
    using progress = showProgress(io)

    progress.update(1, 9, '1 plant copied')
    pass(LINE_EVERY_MS - 1)
    progress.update(2, 9, '2 plants copied')
    pass(1)
    progress.update(3, 9, '3 plants copied')
    progress.update(4, 9, '4 plants copied')
    pass(LINE_EVERY_MS)
    progress.update(5, undefined, '5 plants copied')

    expect(told).toEqual(['33 %: 3 plants copied', '5 plants copied'])
  })

  test('is a bar on a terminal, without lines', () => {
    const terminal = makeTerminal()
    const { io, told, pass } = makeIo(terminal.stream)
    {
      using progress = showProgress(io)
      progress.update(1, 4, '1 plant copied')
      pass(LINE_EVERY_MS)
      progress.update(4, 4, '4 plants copied')
    }

    expect(terminal.text()).toContain('25 % | 1 plant copied')
    expect(terminal.text()).toContain('█')
    expect(told).toEqual([])
  })
})

describe('a command on a terminal', () => {
  test('writes escape codes with TERM=xterm, and none with TERM=dumb', async () => {
    using made = await fillDatabase(1)
    const backUp = (term: string) =>
      runOnTerminal(['backup', join(made.folder, term), '--database', made.database], { term })
    const [xterm, dumb] = [await backUp('xterm'), await backUp('dumb')]

    expect(xterm.text).toContain('\u001b')
    expect(dumb.text).not.toContain('\u001b')
    expect(dumb).toEqual({ text: expect.stringContaining(join(made.folder, 'dumb')), exitCode: 0 })
  })

  test('clears its bar before it says that Ctrl-C has stopped it', async () => {
    using made = await fillDatabase(MANY_PLANTS)
    const args = ['backup', join(made.folder, 'backup.db'), '--database', made.database]
    const { text, exitCode } = await runOnTerminal(args, { interruptAt: 'plants copied' })

    expect(exitCode).toBe(130)
    expect(text.split('\u001b[2K').at(-1)).toBe('Stopped by SIGINT: nothing was made. Run the same command again.\r\n')
  })

  test('shows the control characters of a path on stdout as JSON escapes', async () => {
    using made = await fillDatabase(1)
    const [raw, escaped] = ['\u001b[2K\nDone.\u202e\u2028\u009b', String.raw`\u001b[2K\u000aDone.\u202e\u2028\u009b`]
    const { text, exitCode } = await runOnTerminal(['backup', join(made.folder, raw), '--database', made.database], {
      term: 'dumb',
    })

    expect({ text: text.split('\r\n').slice(1), exitCode }).toEqual({
      text: [join(made.folder, escaped), ''],
      exitCode: 0,
    })
  })
})
