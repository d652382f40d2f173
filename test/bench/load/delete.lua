-- Deletes plants of one user, with ids that ascend. Arguments: the file of the token and the first id.
local headers
local id

function init(arguments)
  for token in io.lines(arguments[1]) do
    headers = { ["Authorization"] = "Bearer " .. token }
    break
  end
  id = tonumber(arguments[2])
end

function request()
  local path = "/plants/" .. id
  id = id + 1
  return wrk.format("DELETE", path, headers)
end
