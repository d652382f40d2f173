import { type GroupCommitOptions, openGroupCommit } from './group-commit.ts'

declare const self: Worker

/** The entry point of the thread that writes, which writer.ts starts. The first message has the options. */
self.onmessage = ({ data: options }: MessageEvent<GroupCommitOptions>) => {
  const take = openGroupCommit(options, (sent) => self.postMessage(sent))
  self.onmessage = ({ data: message }: MessageEvent<string>) => take(message)
}
