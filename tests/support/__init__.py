"""What the tests share: databases, brokers, waiting for facts."""
