/**
 * Sends requests at fixed times, without waiting for earlier answers, and measures latency from those times. Usage:
 * `bun generator.ts PLAN`, where PLAN is a `Plan` in JSON. Prints a `StreamResult` for each schedule as JSON.
 */
import type { Plan } from './open-loop.ts'
import { openStream } from './stream.ts'

/** Time after the plan for the last answers. */
const GRACE_SECONDS = 20

// A connection throws. A measurement with an error is worthless.
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
  // Timers are too coarse, so the program polls the clock. The core has nothing else to do.
  await new Promise((resolve) => setImmediate(resolve))
}
console.log(JSON.stringify(streams.map((stream) => stream.result())))
for (const stream of streams) stream.close()
