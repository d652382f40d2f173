import { type GroupWriter, openGroupWriter } from './group-commit.ts'
import type { Message, Sent } from './writer.ts'

declare const self: Worker

/** The thread that writes, an entry point of its own. writer.ts starts it, and says what it is sent and answers. */
let writer: GroupWriter | undefined

const send = (sent: Sent) => self.postMessage(sent)

self.onmessage = ({ data: message }: MessageEvent<Message>) => {
  if ('path' in message) {
    writer = openGroupWriter(message)
    return
  }
  // What to write to comes first.
  if (writer === undefined) throw new TypeError('the thread has not been told what to write to')
  if ('group' in message) {
    send({ answer: writer.perform(message.group) })
    // After the answer, so that nobody waits for it but the next group.
    const report = writer.checkpointIfDue()
    if (report !== undefined) send(report)
    return
  }
  send({ answer: writer[message.call]() })
}
