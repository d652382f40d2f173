// Tested in test/engine/sqlite/shared-commits.test.ts.
import { receiveMessageOnPort } from 'node:worker_threads'
import { type GroupCommitOptions, openGroupCommit } from './group-commit.ts'
import type { ToWriter } from './messages.ts'
import type { Program } from './program.ts'
import type { WriterLink } from './writer.ts'

declare const self: Worker

/** A commit waits for other threads no longer than this, because the last one may have been a stall of the disk. */
const WAIT_MAX_MS = 20

/**
 * Runs a program in this thread, which writes for all threads of its process from now on. `useThread` of writer.ts sends the
 * first message, with the options, and with each message the link of another thread.
 */
export function runProgram(program: Program): void {
  const links: WriterLink[] = []
  let listen: ((link: WriterLink) => void) | undefined

  self.onmessage = ({ data: { options, link } }: MessageEvent<{ options: GroupCommitOptions; link: WriterLink }>) => {
    listen ??= open(program, options, links)
    links.push(link)
    listen(link)
    link.port.postMessage('done')
  }
}

/**
 * Opens the connection. Returns a function that commits what comes at a link from now on. When a message arrives, the writes
 * that wait at all links share one commit. It waits for the threads that had writes in the last commit, at most as long as that
 * one took. Without it, threads take turns: the writes of 64 connections to two threads come 18 to a commit instead of 26. To
 * one thread, they come 32.
 */
function open(program: Program, options: GroupCommitOptions, links: readonly WriterLink[]) {
  const commit = openGroupCommit(program, options, (report) => links[0]?.port.postMessage({ report }))
  const { posted } = options.changes
  let lastWriters: ReadonlySet<WriterLink> = new Set()
  let lastMs = 0

  return (link: WriterLink) =>
    link.port.on('message', (text: string) => {
      const received: [WriterLink, ToWriter][] = []
      const writers = new Set<WriterLink>()
      const take = (from: WriterLink, text: string) => {
        // `openWriteConnection` of writer.ts has made the text.
        const message = JSON.parse(text) as ToWriter
        received.push([from, message])
        if ('group' in message) writers.add(from)
      }
      take(link, text)
      const deadlineMs = performance.now() + Math.min(lastMs, WAIT_MAX_MS)
      for (;;) {
        const seen = Atomics.load(posted, 0)
        for (const each of links) {
          let next = receiveMessageOnPort(each.port)
          for (; next !== undefined; next = receiveMessageOnPort(each.port)) take(each, next.message)
        }
        const leftMs = deadlineMs - performance.now()
        // A look for commits of other processes waits for no thread.
        if (writers.size === 0 || lastWriters.isSubsetOf(writers) || leftMs <= 0) break
        Atomics.wait(posted, 0, seen, leftMs)
      }
      const startMs = performance.now()
      commit(received)
      if (writers.size === 0) return
      lastWriters = writers
      lastMs = performance.now() - startMs
    })
}
