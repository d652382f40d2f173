-- Puts plants of one user. The ids ascend, and begin anew after some. Arguments: the file of the token, the first id, how many ids, and
-- the value of If-None-Match, if there is one.
local headers
local first, count
local number = 0

function init(arguments)
  for token in io.lines(arguments[1]) do
    headers = { ["Authorization"] = "Bearer " .. token, ["Content-Type"] = "application/json" }
    break
  end
  first = tonumber(arguments[2])
  count = tonumber(arguments[3])
  headers["If-None-Match"] = arguments[4]
end

function request()
  local id = first + number % count
  number = number + 1
  local body = '{"name":"Monstera deliciosa ' .. id .. ' put ' .. number .. '","tag":"evergreen"}'
  return wrk.format("PUT", "/plants/" .. id, headers, body)
end
