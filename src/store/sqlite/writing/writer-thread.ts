import { receiveMessageOnPort } from 'node:worker_threads'
import type { Line } from '../share.ts'
import { type Client, type GroupCommitOptions, openGroupCommit } from './group-commit.ts'

declare const self: Worker

const clients: (Client & Line)[] = []
let take: ReturnType<typeof openGroupCommit> | undefined

/**
 * The entry point of the thread that writes, which channels.ts starts. The first message has the options, and each one the line of
 * another thread. When a message arrives, the writes that wait at all lines share one commit.
 */
self.onmessage = ({ data: { options, line } }: MessageEvent<{ options: GroupCommitOptions; line: Line }>) => {
  const commit = take ?? openGroupCommit(options, (report) => clients[0]?.port.postMessage({ report }))
  take = commit
  const client = { ...line, send: (sent: unknown) => line.port.postMessage(sent) }
  clients.push(client)
  line.port.on('message', (message: string) => {
    const received: [Client, string][] = [[client, message]]
    for (const each of clients) {
      for (let next = receiveMessageOnPort(each.port); next !== undefined; next = receiveMessageOnPort(each.port)) {
        received.push([each, next.message])
      }
    }
    commit(received)
  })
}
