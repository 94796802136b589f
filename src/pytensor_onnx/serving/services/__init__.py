"""Files that are copied into folders for servers, which import the packages of these servers."""
