/** What people type where the URL of a database belongs. All are wrong, and hold the password Sesame-99 and the user wrong. */
export const MISTYPED_URLS: readonly string[] = [
  // A password where no password is read.
  'postgres://wrong@host/plants?password=Sesame-99',
  'postgres://wrong@host/plants?Sesame-99',
  'postgres://wrong:Sesame-99@host/plants?sslmode=on',
  'postgres://wrong:Sesame-99@one,two/plants',
  'postgres://wrong:Sesame-99@host',
  // Special characters of a password as they are, or encoded too often.
  'postgres://wrong:Sesame-99%40host/plants',
  'postgres://wrong:12#Sesame-99@host/plants',
  'postgres://wrong:12?Sesame-99@host/plants',
  'postgres://wrong:12@Sesame-99/34@host/plants',
  'postgres://wrong:%Sesame-99@host/plants',
  // Another scheme, or something that is none.
  ' postgres://wrong:Sesame-99@host/plants',
  '"postgres://wrong:Sesame-99@host/plants"',
  'postgress://wrong:Sesame-99@host/plants',
  'postgres:/wrong:Sesame-99@host/plants',
  'postgres:wrong:Sesame-99%40host/plants',
  'postgres//wrong:Sesame-99@host/plants',
  'wrong:Sesame-99@host/plants',
  'mysql://wrong:Sesame-99@host/plants',
  'jdbc:postgresql://host/plants?user=wrong&password=Sesame-99',
  // What libpq and ADO.NET take.
  'host=host user=wrong password=Sesame-99',
  'host=host user=wrong PASSWORD = Sesame-99',
  'Server=host;Uid=wrong;Pwd=Sesame-99',
]
