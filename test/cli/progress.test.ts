import { describe, expect, test } from 'bun:test'
import { Writable } from 'node:stream'
import { LINE_EVERY_MS, showProgress } from '../../src/cli/long-task.ts'

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
