import { expect, test } from 'bun:test'
import { LINE_EVERY_MS, progressLines } from '../../src/cli/long-task.ts'

test('progress is a line now and then, with the share if the total is known', () => {
  let nowMs = 0
  const told: (string | readonly string[])[] = []
  const report = async (lines: string | readonly string[]) => void told.push(lines)
  const show = progressLines({ monotonicMs: () => nowMs, report })

  const updateAt = (ms: number, plants: number, total?: number) => {
    nowMs = ms
    show(plants, total, `${plants} plants copied`)
  }
  updateAt(0, 1, 9)
  updateAt(LINE_EVERY_MS - 1, 2, 9)
  updateAt(LINE_EVERY_MS, 3, 9)
  updateAt(LINE_EVERY_MS, 4, 9)
  updateAt(2 * LINE_EVERY_MS, 5)

  expect(told).toEqual(['33 %: 3 plants copied', '5 plants copied'])
})
