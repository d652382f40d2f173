/**
 * Sends requests at fixed times, whether or not those before were answered, and measures from those times. Started as
 * `bun generator.ts PLAN`, where the plan is a `Plan` as JSON; prints a `StreamResult` of each schedule as JSON.
 */
import type { Plan } from './open-loop.ts'
import { openStream } from './stream.ts'

/** Beyond the plan, for what was sent late to be answered. */
const GRACE_SECONDS = 20

// What a connection throws, out of the event loop: a load that meets an error measures nothing.
process.once('uncaughtException', ({ message }) => {
  console.error(message)
  process.exit(1)
})

const { port, warmUpSeconds, seconds, schedules }: Plan = JSON.parse(process.argv[2] ?? '')
const streams = await Promise.all(schedules.map((schedule) => openStream(schedule, port, warmUpSeconds, seconds)))
const startMs = performance.now()
const deadlineMs = startMs + (warmUpSeconds + seconds + GRACE_SECONDS) * 1000
for (const stream of streams) stream.begin(startMs)
while (!streams.every((stream) => stream.isOver())) {
  const nowMs = performance.now()
  if (nowMs > deadlineMs) throw new Error('the server left requests without an answer')
  for (const stream of streams) stream.advance(nowMs)
  // Timers are too coarse: the core belongs to this program, and it looks at the clock all the time.
  await new Promise((resolve) => setImmediate(resolve))
}
console.log(JSON.stringify(streams.map((stream) => stream.result())))
for (const stream of streams) stream.close()
