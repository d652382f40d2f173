import { receiveMessageOnPort } from 'node:worker_threads'
import type { Line } from '../share.ts'
import { type Client, type GroupCommitOptions, openGroupCommit } from './group-commit.ts'

declare const self: Worker

const lines: Line[] = []
let listen: ((line: Line) => void) | undefined

/**
 * The entry point of the thread that writes, which writer.ts starts. The first message has the options, and each one the line of
 * another thread. When a message arrives, the writes that wait at all lines share one commit. It waits for the threads that had
 * writes in the last one, at most as long as that one took. Without it, threads take turns: the writes of 64 connections to two threads
 * come 18 to a commit instead of 26. To one thread, they come 32.
 */
self.onmessage = ({ data: { options, line } }: MessageEvent<{ options: GroupCommitOptions; line: Line }>) => {
  listen ??= open(options)
  lines.push(line)
  listen(line)
}

/** Opens the connection. Returns a function that commits what comes at a line from now on. */
function open(options: GroupCommitOptions) {
  const commit = openGroupCommit(options, (report) => lines[0]?.port.postMessage({ report }))
  const { posted } = options.changes
  let lastClients: readonly Client[] = []
  let lastMs = 0

  return (line: Line) =>
    line.port.on('message', (message: string) => {
      const received: [Line, string][] = [[line, message]]
      const missing = new Set(lastClients)
      missing.delete(line)
      const deadlineMs = performance.now() + lastMs
      for (let leftMs = Number.POSITIVE_INFINITY; leftMs > 0; leftMs = deadlineMs - performance.now()) {
        const seen = Atomics.load(posted, 0)
        for (const each of lines) {
          for (let next = receiveMessageOnPort(each.port); next !== undefined; next = receiveMessageOnPort(each.port)) {
            received.push([each, next.message])
            missing.delete(each)
          }
        }
        if (missing.size === 0) break
        Atomics.wait(posted, 0, seen, deadlineMs - performance.now())
      }
      const startMs = performance.now()
      lastClients = commit(received)
      lastMs = performance.now() - startMs
    })
}
