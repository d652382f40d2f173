/** Mistyped URLs of databases. Each has the password Sesame-99 or the user wrong, which no message may repeat. */
export const MISTYPED_URLS: readonly string[] = [
  // A password in a part of the URL that has none.
  'postgres://wrong@host/plants?password=Sesame-99',
  'postgres://wrong@host/plants?Sesame-99',
  'postgres://wrong:Sesame-99@host/plants?sslmode=on',
  'postgres://wrong:Sesame-99@one,two/plants',
  'postgres://wrong:Sesame-99@host',
  // A password with unencoded special characters, or encoded too often.
  'postgres://wrong:Sesame-99%40host/plants',
  'postgres://wrong:12#Sesame-99@host/plants',
  'postgres://wrong:12?Sesame-99@host/plants',
  'postgres://wrong:12@Sesame-99/34@host/plants',
  'postgres://wrong:%Sesame-99@host/plants',
  // Another scheme, or none.
  ' postgres://wrong:Sesame-99@host/plants',
  '"postgres://wrong:Sesame-99@host/plants"',
  'postgress://wrong:Sesame-99@host/plants',
  'postgres:/wrong:Sesame-99@host/plants',
  'postgres:wrong:Sesame-99%40host/plants',
  'postgres//wrong:Sesame-99@host/plants',
  'wrong:Sesame-99@host/plants',
  'mysql://wrong:Sesame-99@host/plants',
  'jdbc:postgresql://host/plants?user=wrong&password=Sesame-99',
  // The syntax of libpq and ADO.NET.
  'host=host user=wrong password=Sesame-99',
  'host=host user=wrong PASSWORD = Sesame-99',
  'Server=host;Uid=wrong;Pwd=Sesame-99',
]
