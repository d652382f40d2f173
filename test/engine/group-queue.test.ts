import { describe, expect, test } from 'bun:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { sleepSync } from 'bun'
import {
  GROUP_MAX_TEXT_LENGTH,
  GROUP_MAX_WRITES,
  type GroupOutcome,
  LOCK_MAX_WAIT_MS,
  QUEUE_DEADLINES,
  QUEUE_MAX_TEXT_LENGTH,
  QUEUE_MAX_WRITES,
  queueGroups,
  type Write,
} from '../../src/engine/group-queue.ts'
import { AppError } from '../../src/error.ts'
import { outcomesOf } from '../store/fixtures.ts'
import { SLACK_MS } from '../support/slack.ts'
import { until } from '../support/until.ts'

type Lane = 'create' | 'delete'

/** A queue whose groups wait until the test ends them. */
function openQueue(threads = 1) {
  const groups: { readonly lane: Lane; readonly group: readonly string[]; end(outcome: GroupOutcome): void }[] = []
  const refusals: string[] = []
  const perform = (lane: Lane) => (group: readonly string[]) => {
    const { promise, resolve } = Promise.withResolvers<GroupOutcome>()
    groups.push({ lane, group, end: resolve })
    return promise
  }
  const queue = queueGroups({
    perform: { create: perform('create'), delete: perform('delete') },
    observer: { recordGroup() {}, recordRefusal: (reason) => void refusals.push(reason) },
    threads,
  })
  return {
    ...queue,
    refusals,
    /** Asks for a write whose content is its key. */
    create: (key: string, rest: Partial<Write<Lane, string>> = {}) =>
      queue.write({ lane: 'create', content: key, textLength: 0, key, run: 'create', ...rest }),
    delete: (key: string, run: string | undefined = 'delete') =>
      queue.write({ lane: 'delete', content: key, textLength: 0, key, run }),
    /** Waits until so many groups have begun in all, and returns the latest. */
    latest: (count: number) =>
      until(`group ${count} begins`, (see) => see(groups).length >= count && groups[count - 1]),
  }
}

describe('the queue of groups', () => {
  test.each([1, 4])(
    'holds its share of QUEUE_MAX_WRITES that no group has taken, and refuses one more: 1 of %d',
    async (threads) => {
      const queue = openQueue(threads)
      const max = QUEUE_MAX_WRITES / threads
      const first = queue.create('first')
      const held = await queue.latest(1)

      const rest = outcomesOf(Array.from({ length: max + 1 }, (_, id) => queue.create(`${id}`)))
      expect(QUEUE_MAX_WRITES).toBe(16384)
      expect(queue.refusals).toEqual(['queue_full'])
      expect(queue.load().waitingWrites).toBe(max + 1)
      const ended = queue.refuse(new AppError('store_busy')).then(() => 'ended')
      expect(await Promise.race([ended, nextTurn('under way')])).toBe('under way')
      held.end('done')

      await ended
      expect(new Set(await rest)).toEqual(new Set([BUSY]))
      expect(await first).toBeUndefined()
    },
  )

  test('takes a write that waits because the thread stood still, also for longer than its deadline', async () => {
    const queue = openQueue()

    // Behind the immediates of this turn of the event loop, so that timers come before the next ones.
    await nextTurn()
    const write = queue.create('late')
    sleepSync(QUEUE_DEADLINES.queueMs + 100)
    const { end, group } = await queue.latest(1)
    end('done')

    expect([group, await write, queue.refusals]).toEqual([['late'], undefined, []])
  })

  test('takes a write whose key was in another lane also if the last group of its lane had one write', async () => {
    const queue = openQueue()
    const first = queue.create('a')
    const lone = await queue.latest(1)
    lone.end('done')
    await first
    const other = queue.delete('b')
    const held = await queue.latest(2)

    const write = queue.create('b')
    await nextTurn()
    held.end('done')
    const { lane, group, end } = await queue.latest(3)
    end('done')

    expect([lane, group, await other, await write]).toEqual(['create', ['b'], undefined, undefined])
  })

  test('holds text of QUEUE_MAX_TEXT_LENGTH or one longer text, writes without text, and refuses one more character', async () => {
    const queue = openQueue()
    const ask = (textLength: number) => queue.create('x', { textLength })

    const writes = outcomesOf([ask(QUEUE_MAX_TEXT_LENGTH - 1), ask(1), ask(1), ask(0)])
    for (const count of [1, 2]) (await queue.latest(count)).end('done')
    expect(await writes).toEqual(['done', 'done', BUSY, 'done'])
    const long = outcomesOf([ask(QUEUE_MAX_TEXT_LENGTH + 1), ask(1)])
    ;(await queue.latest(3)).end('done')

    expect(QUEUE_MAX_TEXT_LENGTH).toBe(16 * 1024 * 1024)
    expect(await long).toEqual(['done', BUSY])
    expect(queue.refusals).toEqual(['queue_full', 'queue_full'])
  })

  test('refuses a write of the next group after nextGroupMs, one behind it after queueMs, and takes later ones', async () => {
    const queue = openQueue()
    const first = queue.create('first')
    const held = await queue.latest(1)
    const waitMs = async (key: string) => {
      const startMs = performance.now()
      expect(await outcomesOf([queue.create(key)])).toEqual([BUSY])
      return performance.now() - startMs
    }

    const front = waitMs('front')
    const others = outcomesOf(Array.from({ length: GROUP_MAX_WRITES - 1 }, (_, id) => queue.create(`${id}`)))
    expect(await waitMs('behind')).toBeWithin(QUEUE_DEADLINES.queueMs - 1, QUEUE_DEADLINES.queueMs + SLACK_MS)
    expect(queue.refusals).toEqual(['queue_full'])
    expect(await front).toBeWithin(QUEUE_DEADLINES.nextGroupMs - 1, QUEUE_DEADLINES.nextGroupMs + SLACK_MS)
    expect(new Set(await others)).toEqual(new Set([BUSY]))
    const last = queue.create('last')
    held.end('done')
    const next = await queue.latest(2)
    next.end('done')

    expect([QUEUE_DEADLINES.queueMs, QUEUE_DEADLINES.nextGroupMs]).toEqual([500, 1500])
    expect(next.group).toEqual(['last'])
    expect(await outcomesOf([first, last])).toEqual(['done', 'done'])
    expect(queue.refusals).toHaveLength(1 + GROUP_MAX_WRITES)
  })

  test('keeps the writes of a locked database for LOCK_MAX_WAIT_MS, and tries again with those that came meanwhile', async () => {
    const queue = openQueue()
    const startMs = performance.now()
    const locked = outcomesOf([queue.create('old')])
    let isRefused = false
    void locked.then(() => {
      isRefused = true
    })
    let count = 1
    let young: Promise<string[]> | undefined
    for (; !isRefused; count++) {
      const { end } = await queue.latest(count)
      if (performance.now() > startMs + LOCK_MAX_WAIT_MS / 2) young ??= outcomesOf([queue.create('young')])
      end('locked')
      await Bun.sleep(1)
    }
    const waitedMs = performance.now() - startMs
    const next = await queue.latest(count)
    next.end('done')

    expect(LOCK_MAX_WAIT_MS).toBe(2000)
    expect(waitedMs).toBeWithin(LOCK_MAX_WAIT_MS - 1, LOCK_MAX_WAIT_MS + SLACK_MS)
    expect([await locked, queue.refusals]).toEqual([[BUSY], ['locked']])
    expect([await young, next.group]).toEqual([['done'], ['young']])
  })

  test('commits the lanes at the same time, but the writes of a key in the order in which they were asked for', async () => {
    const queue = openQueue()
    const writes = [queue.create('a'), queue.create('b'), queue.create('a'), queue.delete('a'), queue.delete('c')]
    writes.push(queue.create('a'), queue.delete('c'), queue.delete('c', 'other'), queue.delete('d', ''))
    const alone = { lane: 'delete', content: 'd alone', textLength: 0, key: 'd' } as const
    writes.push(queue.write(alone), queue.write(alone), queue.delete('d', ''))

    const groups: unknown[] = []
    for (let count = 1; count <= 6; count++) {
      const { lane, group, end } = await queue.latest(count)
      groups.push([lane, group])
      // The first group of creates ends only when the first group of deletes has begun.
      if (count > 1) end('done')
      if (count === 2) (await queue.latest(1)).end('done')
    }

    expect(groups).toEqual([
      ['create', ['a', 'b', 'a']],
      ['delete', ['c', 'c', 'd']],
      ['delete', ['a', 'c', 'd alone']],
      ['create', ['a']],
      ['delete', ['d alone']],
      ['delete', ['d']],
    ])
    expect(await outcomesOf(writes)).toEqual(writes.map(() => 'done'))
  })

  test.each([1, 4])(
    'takes its share of GROUP_MAX_WRITES writes into a group, and gives each its own result: 1 of %d',
    async (threads) => {
      const queue = openQueue(threads)
      const max = GROUP_MAX_WRITES / threads
      const writes = Array.from({ length: max + 1 }, (_, id) => queue.create(`${id}`))
      const outcomes = outcomesOf(writes)

      const first = await queue.latest(1)
      first.end({ refused: [[1, 'plant_exists']], returned: [[0, 7]] })
      const second = await queue.latest(2)
      second.end('done')

      expect([first.group.length, second.group]).toEqual([max, [`${max}`]])
      expect(await writes[0]).toBe(7)
      expect(await outcomes).toEqual(writes.map((_, id) => (id === 1 ? 'plant_exists' : 'done')))
    },
  )

  test.each([1, 4])(
    'ends a group with the write that brings its share of GROUP_MAX_TEXT_LENGTH: 1 of %d',
    async (threads) => {
      const queue = openQueue(threads)
      const half = { textLength: GROUP_MAX_TEXT_LENGTH / threads / 2 }
      const writes = [queue.create('a', half), queue.create('b', half), queue.create('c', half)]

      const first = await queue.latest(1)
      first.end('done')
      const second = await queue.latest(2)
      second.end('done')

      expect([first.group, second.group]).toEqual([['a', 'b'], ['c']])
      await Promise.all(writes)
    },
  )
})

const BUSY = 'store_busy'
