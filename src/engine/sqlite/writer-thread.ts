import { receiveMessageOnPort } from 'node:worker_threads'
import { type GroupCommitOptions, openGroupCommit } from './group-commit.ts'
import type { Message } from './messages.ts'
import type { Program } from './program.ts'
import type { Line } from './share.ts'

declare const self: Worker

/** A commit waits for other threads no longer than this, because the last one may have been a stall of the disk. */
const WAIT_MAX_MS = 20

/**
 * Runs a program in this thread, which writes for all threads of its process from now on. `useThread` of writer.ts sends the first
 * message, with the options, and with each message the line of another thread.
 */
export function runProgram(program: Program): void {
  const lines: Line[] = []
  let listen: ((line: Line) => void) | undefined

  self.onmessage = ({ data: { options, line } }: MessageEvent<{ options: GroupCommitOptions; line: Line }>) => {
    listen ??= open(program, options, lines)
    lines.push(line)
    listen(line)
    line.port.postMessage('done')
  }
}

/**
 * Opens the connection. Returns a function that commits what comes at a line from now on. When a message arrives, the writes that wait
 * at all lines share one commit. It waits for the threads that had writes in the last commit, at most as long as that one took.
 * Without it, threads take turns: the writes of 64 connections to two threads come 18 to a commit instead of 26. To one thread, they
 * come 32.
 */
function open(program: Program, options: GroupCommitOptions, lines: readonly Line[]) {
  const commit = openGroupCommit(program, options, (report) => lines[0]?.port.postMessage({ report }))
  const { posted } = options.changes
  let lastWriters: ReadonlySet<Line> = new Set()
  let lastMs = 0

  return (line: Line) =>
    line.port.on('message', (text: string) => {
      const received: [Line, Message][] = []
      const writers = new Set<Line>()
      const take = (from: Line, text: string) => {
        // `openWriter` of writer.ts has made the text.
        const message = JSON.parse(text) as Message
        received.push([from, message])
        if ('group' in message) writers.add(from)
      }
      take(line, text)
      const deadlineMs = performance.now() + Math.min(lastMs, WAIT_MAX_MS)
      for (let leftMs = Number.POSITIVE_INFINITY; leftMs > 0; leftMs = deadlineMs - performance.now()) {
        const seen = Atomics.load(posted, 0)
        for (const each of lines) {
          let next = receiveMessageOnPort(each.port)
          for (; next !== undefined; next = receiveMessageOnPort(each.port)) take(each, next.message)
        }
        // A look for commits of other processes waits for no thread.
        if (writers.size === 0 || lastWriters.isSubsetOf(writers)) break
        Atomics.wait(posted, 0, seen, deadlineMs - performance.now())
      }
      const startMs = performance.now()
      commit(received)
      if (writers.size === 0) return
      lastWriters = writers
      lastMs = performance.now() - startMs
    })
}
