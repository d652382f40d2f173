/**
 * `bun create-plants.ts URL TOKEN FIRST_ID`: creates plants over several connections until SIGTERM, and then prints the ids
 * of the acknowledged ones, the number of other outcomes, and the longest time without an acknowledgement as JSON. A client that
 * gets no success tries its next plant a moment later.
 */
const CLIENTS = 16
const PAUSE_MS = 20

const [url = '', token = '', firstId = ''] = process.argv.slice(2)
const acknowledged: number[] = []
let refused = 0
let acknowledgedAt = performance.now()
let longestGapMs = 0
let nextId = Number(firstId)
let isOver = false

async function work(): Promise<void> {
  while (!isOver) {
    const id = nextId++
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const request = { method: 'POST', headers, body: JSON.stringify({ id, name: `Plant ${id}` }) }
    const answer = await fetch(`${url}/plants`, request).catch(() => undefined)
    if (answer?.status === 200) {
      acknowledged.push(id)
      longestGapMs = Math.max(longestGapMs, performance.now() - acknowledgedAt)
      acknowledgedAt = performance.now()
    } else {
      refused += 1
      await Bun.sleep(PAUSE_MS)
    }
  }
}

const clients = Array.from({ length: CLIENTS }, work)
process.once('SIGTERM', () => {
  isOver = true
})
await Promise.all(clients)
console.log(JSON.stringify({ acknowledged, refused, longestGapMs: Math.round(longestGapMs) }))

export {}
